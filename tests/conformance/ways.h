// The ways in which a caller can have the same values reduced to the devices they are on.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include <onesum/cross_device_ops.h>

namespace onesum::testing {

enum class Way : std::uint8_t {
  kReturned,         // batch_reduce
  kAsync,            // batch_reduce_async
  kInto,             // batch_reduce_into, memory of its own
  kInPlace,          // batch_reduce_into, every result is its replica
  kInPlacePermuted,  // the same, the results in reverse order
  kPartlyInPlace,    // every second result is its replica
  kPrepared,         // prepare and run, in place
};
inline constexpr Way kAllWays[] = {Way::kReturned,        Way::kAsync,         Way::kInto,    Way::kInPlace,
                                   Way::kInPlacePermuted, Way::kPartlyInPlace, Way::kPrepared};

std::string_view name_of(Way way);

// In place needs results of the type of the replicas.
bool is_possible(Way way, ReduceOp op, const PerReplica& value);

PerReplica deep_copy(const PerReplica& value);

// Leaves `values` as they are: where results are in place, it works on a copy. The components of each result
// are all of them, in whatever order.
std::vector<PerReplica> reduced(CrossDeviceOps& ops, ReduceOp op, const std::vector<PerReplica>& values,
                                Way way);

}  // namespace onesum::testing
