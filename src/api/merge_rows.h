// Sparse values whose duplicate rows are merged (docs/semantics.md, rule 4.7).
//
// The plan of such a call concatenates the replicas' rows, undivided, into memory of the library; when it has
// run, rows of one index are added from there into the results. Every replica has been read by then, so a
// result may be a replica in place.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "api/describe.h"
#include "api/pairs.h"
#include "api/row_groups.h"
#include "base/clock.h"
#include "engine/device.h"
#include "planner/planner.h"

namespace onesum::api {

// Lives as long as the call, whose pairs it refers to. No pair mixes dense and sparse components.
class MergeRows {
 public:
  // Validates the call, but for what depends on the contents of the indices.
  MergeRows(const CallTraits& traits, const Pairs& pairs, const CommunicationOptions& options,
            const planner::Placement& placement);
  MergeRows(const MergeRows&) = delete;
  MergeRows& operator=(const MergeRows&) = delete;

  // What is to be planned and run first: sparse values go to one concatenation each, on the first device of
  // their destination; dense ones are as they were.
  Pairs pairs() const { return {pairs_.size(), this, get}; }

  // Says in the choices of the plan of these pairs what happens to the concatenations.
  void explain_in(planner::Planned& planned) const;

  // Looks at the indices. Throws invalid_argument for one that names no row, and for a result of the caller's
  // that has not just as many rows as there are different indices.
  void read_indices();

  // Merges the concatenations. `results` are those of pairs(), or none where the caller passed memory;
  // returns those of the call. Throws deadline_exceeded.
  std::vector<Mirrored> finish(std::vector<Mirrored> results, Clock::time_point deadline);

 private:
  // One sparse value.
  struct Merge {
    std::size_t pair = 0;
    const DistributedValues* value = nullptr;
    const DistributedValues* results = nullptr;  // the caller's; null: to be made
    std::vector<Device> destinations;            // complete
    DType index_dtype = DType::kInt64;
    DType result_dtype = DType::kFloat32;
    std::optional<Shape> dense_shape;         // that a replica names
    std::optional<PerReplica> concatenation;  // of calls into the caller's memory
    RowGroups groups;
  };

  static Pair get(const void* self, std::size_t index) {
    return static_cast<const MergeRows*>(self)->pairs_[index];
  }
  Merge merge_of(const Pair& pair, const planner::Stream& values, const planner::Stream& indices,
                 const std::vector<Device>& devices) const;
  std::string name_of_result(const Merge& merge, std::size_t destination) const;
  void check_results(const Merge& merge) const;
  void check_rows(const Merge& merge) const;
  std::vector<Value> make_results(const Merge& merge) const;
  engine::ReduceForm form_of(const Merge& merge) const;
  void write(const Merge& merge, const IndexedSlices& concatenation, std::span<const Value> results,
             Clock::time_point deadline) const;

  CallTraits traits_;
  std::vector<Merge> merges_;  // the pairs point into it
  std::vector<Pair> pairs_;
};

}  // namespace onesum::api
