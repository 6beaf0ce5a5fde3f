// Sparse values whose duplicate rows are merged (docs/semantics.md, rule 4.7).
//
// The plan of such a call concatenates the replicas' rows, undivided, into memory of the library; when it has
// run, rows of one index are added from there into the results. Every replica has been read by then, so a
// result may be a replica in place.
#pragma once

#include <cstddef>
#include <cstdint>
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
//
// Where workers are processes, each that has destinations gets a concatenation of all replicas' rows and
// merges them itself. What the indices of the others are is known only then.
class MergeRows {
 public:
  // `request`: of all workers; `own`: the rank of this process, whose are the pairs; absent: all workers are
  // here. Validates the call as far as the request tells, which is the same for all workers.
  MergeRows(const CallTraits& traits, const Pairs& pairs, planner::Request request,
            const planner::Placement& placement, std::optional<std::int32_t> own = {});
  MergeRows(const MergeRows&) = delete;
  MergeRows& operator=(const MergeRows&) = delete;

  // What is to be planned and run first: sparse values go to one concatenation each, on the first device that
  // their destination has here; dense ones are as they were.
  Pairs pairs() const { return {pairs_.size(), this, get}; }
  // The same as a request of all workers.
  const planner::Request& request() const noexcept { return request_; }

  // Says in the choices of the plan of these pairs what happens to the concatenations.
  void explain_in(planner::Planned& planned) const;

  // Throws invalid_argument for a result of the caller's that overlaps what it must not.
  void refuse_overlaps() const;

  // Throws invalid_argument for an index of a replica here that names no row.
  void check_indices() const;

  // Looks at the indices of all replicas: those of the values if all are here, else of the concatenations in
  // `results` (or in memory of its own, where the caller passed memory). Throws invalid_argument for an index
  // that names no row, and for a result of the caller's that has not just as many rows as there are different
  // indices.
  void read_indices();
  void read_indices(std::span<const Mirrored> results);

  // Merges the concatenations. `results` are those of pairs(), or none where the caller passed memory;
  // returns those of the call. Throws deadline_exceeded.
  std::vector<Mirrored> finish(std::vector<Mirrored> results, Clock::time_point deadline);

 private:
  // One sparse value.
  struct Merge {
    std::size_t pair = 0;
    const DistributedValues* value = nullptr;           // the replicas here
    const DistributedValues* results = nullptr;         // the caller's; null: to be made
    std::vector<Device> destinations;                   // of all workers, complete
    std::vector<Device> here;                           // those of this process
    std::vector<planner::ComponentInfo> all_results{};  // the callers', of all destinations
    std::vector<std::size_t> rows;                      // that each replica brings
    Shape shape;                                        // of all their values together
    DType dtype = DType::kFloat32;
    DType index_dtype = DType::kInt64;
    DType result_dtype = DType::kFloat32;
    std::optional<Shape> dense_shape;         // that a replica names
    std::optional<PerReplica> concatenation;  // of calls into the caller's memory
    RowGroups groups;
  };

  static Pair get(const void* self, std::size_t index) {
    return static_cast<const MergeRows*>(self)->pairs_[index];
  }
  Merge merge_of(const Pair& pair, const planner::Stream& values, const planner::Stream& indices) const;
  bool is_here(const Device& device) const;
  void redirect(const Merge& merge);
  std::string name_of_replica(const Merge& merge, std::size_t replica) const;
  std::string name_of_result(const Merge& merge, std::size_t destination) const;
  void check_results(const Merge& merge) const;
  void check_rows(const Merge& merge) const;
  std::vector<Value> make_results(const Merge& merge) const;
  engine::ReduceForm form_of(const Merge& merge) const;
  void write(const Merge& merge, const IndexedSlices& concatenation, std::span<const Value> results,
             Clock::time_point deadline) const;

  CallTraits traits_;
  Pairs given_;
  planner::Request request_;
  const planner::Placement& placement_;
  std::optional<std::int32_t> own_;
  std::vector<Device> devices_;  // by their number in streams
  std::vector<Merge> merges_;    // the pairs point into it
  std::vector<Pair> pairs_;
};

// Whether a call merges rows: of a request none of whose pairs mixes dense and sparse components.
bool merges_rows(const planner::Request& request);

}  // namespace onesum::api
