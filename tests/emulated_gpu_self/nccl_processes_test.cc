// Collectives between processes, which may die.
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include "emulated_gpu_self/clique.h"

namespace onesum::testing {
namespace {

// Through which the process with rank 0 gives the others the unique id.
class Pipe {
 public:
  Pipe() {
    if (::pipe(ends_) != 0) throw std::runtime_error("no pipe");
  }
  ~Pipe() {
    ::close(ends_[0]);
    ::close(ends_[1]);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  void give(const ncclUniqueId& id) const {
    [[maybe_unused]] const ssize_t written = ::write(ends_[1], &id, sizeof(id));
  }
  ncclUniqueId take() const {
    ncclUniqueId id{};
    [[maybe_unused]] const ssize_t read = ::read(ends_[0], &id, sizeof(id));
    return id;
  }

 private:
  int ends_[2] = {-1, -1};
};

// A process for each rank, of one device each.
template <class Act>
std::vector<std::unique_ptr<Child>> start(const Pipe& pipe, int ranks, const Act& act) {
  std::vector<std::unique_ptr<Child>> children;
  for (int rank = 0; rank < ranks; ++rank) {
    children.push_back(
        std::make_unique<Child>(Environment{{"EMULATED_GPU_DEVICES", "1"}}, [&pipe, ranks, rank, act] {
          ncclUniqueId id;
          if (rank == 0) {
            check(ncclGetUniqueId(&id));
            for (int other = 1; other < ranks; ++other) pipe.give(id);
          } else {
            id = pipe.take();
          }
          Ranks own = make_ranks(1, 100000);
          check(ncclCommInitRank(&own[0]->communicator, ranks, id, rank));
          return act(own, rank);
        }));
  }
  return children;
}

TEST(EmulatedNcclProcesses, SumsOfAllRanks) {
  const Pipe pipe;
  const auto children = start(pipe, 3, [](const Ranks& own, int rank) {
    own[0]->put(std::vector<float>(100000, static_cast<float>(rank + 1)));
    for (int turn = 0; turn < 3; ++turn) check(all_reduce(own, 100000));
    const std::vector<float> sums = own[0]->get(100000);
    check(ncclCommDestroy(own[0]->communicator));
    return std::to_string(static_cast<int>(sums.front())) + " " +
           std::to_string(static_cast<int>(sums.back()));
  });
  for (const auto& child : children) {
    const Ended ended = child->wait();
    EXPECT_EQ(ended.text, "54 54");
    EXPECT_EQ(ended.errors, "");
  }
}

void expect_remote_error(std::size_t victim) {
  const Pipe pipe;
  const auto children = start(pipe, 3, [victim](const Ranks& own, int rank) {
    check(all_reduce(own, 10));
    if (rank == static_cast<int>(victim)) {
      check(cudaStreamSynchronize(own[0]->stream.get));
      ::raise(SIGKILL);
    }
    check(all_reduce(own, 10));
    ncclResult_t state = ncclSuccess;
    while (state == ncclSuccess) {
      check(ncclCommGetAsyncError(own[0]->communicator, &state));
      ::usleep(1000);
    }
    const bool still_runs = cudaStreamQuery(own[0]->stream.get) == cudaErrorNotReady;
    check(ncclCommAbort(own[0]->communicator));
    check(cudaStreamSynchronize(own[0]->stream.get));
    return std::to_string(state) + (still_runs ? " hangs" : " ended");
  });
  for (std::size_t rank = 0; rank < children.size(); ++rank) {
    const Ended ended = children[rank]->wait();
    if (rank == victim) {
      EXPECT_EQ(ended.signal, SIGKILL);
    } else {
      EXPECT_EQ(ended.text, "6 hangs") << ended.errors;
    }
  }
}

TEST(EmulatedNcclProcesses, APeerThatDiesIsARemoteError) { expect_remote_error(2); }

TEST(EmulatedNcclProcesses, SoIsTheOneThatMadeTheId) { expect_remote_error(0); }

TEST(EmulatedNcclProcesses, APeerThatLeavesInOrderIsNone) {
  const Pipe pipe;
  const auto children = start(pipe, 2, [](const Ranks& own, int rank) {
    check(all_reduce(own, 10));
    check(cudaStreamSynchronize(own[0]->stream.get));
    if (rank == 1) ::usleep(100000);  // the other is gone by now
    ncclResult_t state = ncclSuccess;
    check(ncclCommGetAsyncError(own[0]->communicator, &state));
    check(ncclCommDestroy(own[0]->communicator));
    return std::to_string(state);
  });
  for (const auto& child : children) {
    const Ended ended = child->wait();
    EXPECT_EQ(ended.text, "0");
    EXPECT_EQ(ended.errors, "");
  }
}

}  // namespace
}  // namespace onesum::testing
