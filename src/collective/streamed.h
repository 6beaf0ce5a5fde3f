// An all-reduce that is looked at but never stored: its lanes as streams, for plan/timeline.h.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "collective/all_reduce.h"
#include "collective/task.h"
#include "plan/timeline.h"

namespace onesum::collective {

class StreamedAllReduce {
 public:
  // Throws invalid_argument for a plan that has to be stored to be looked at and is too large for it: all but
  // rings and halving-doubling over more than 512 workers.
  StreamedAllReduce(Topology topology, Task task, const Scheme& scheme);
  ~StreamedAllReduce();
  StreamedAllReduce(const StreamedAllReduce&) = delete;
  StreamedAllReduce& operator=(const StreamedAllReduce&) = delete;

  // Of its additions: "canonical", or what it is instead.
  std::string order() const;

  // Refer to this object; good for one pass.
  std::span<const plan::TimelineLane> lanes() const noexcept;
  plan::Links links() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace onesum::collective
