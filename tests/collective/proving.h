// Proves the plan of a scheme on a layout, and holds it to what it says of itself.
#pragma once

#include "collective/layouts.h"
#include "plan/plan.h"

namespace onesum::collective {

struct Case {
  Layout layout;
  Scheme scheme;
  ReduceOp op = ReduceOp::kSum;
  DType dtype = DType::kFloat32;
  bool in_place = false;  // where the result has the replicas' type

  std::string name() const;
  Task task() const;
  plan::Plan plan() const;
};

// The plan is accepted by verify, its claim of an order is true, canonical unless there is a ring (or it is
// fast), every message has the type of a replica, of a sum or of a result, and with fast numerics those of
// 16-bit floats have 16 bits.
void expect_proved(const Case& tried);

// Every scheme on all layouts of these workers and devices that have at most `most` devices and more than
// `fewest`, in each number of shards; one of the three is in place. Prints how many plans it proved.
struct Grid {
  std::vector<std::int32_t> workers;
  std::vector<std::int32_t> devices;
  std::vector<std::uint32_t> shards;
  std::int32_t fewest = 0;
  std::int32_t most = 0;
};
void expect_proved(const Grid& grid);

}  // namespace onesum::collective
