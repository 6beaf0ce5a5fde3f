// Calls under way: what Work and PreparedReduce handles refer to.
#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include <onesum/cross_device_ops.h>

namespace onesum {

struct Work::State {
  explicit State(Cluster on) : cluster(std::move(on)) {}

  std::mutex mutex;
  // Until it is done: whoever hears of that may be about to end the process, and with it the last handle.
  std::optional<Cluster> cluster;
  std::condition_variable finished;
  bool done = false;
  bool asked = false;  // somebody waited for it, or took its results: an error was seen
  std::exception_ptr error;
  std::vector<Mirrored> results;
  std::vector<std::function<void()>> when_done;  // nobody's any more once it is done
};

namespace api {

// Runs `call` in its turn on the cluster, without waiting. It is the call's turn then: it must not take one.
Work start_work(const Cluster& cluster, std::function<std::vector<Mirrored>()> call);

}  // namespace api
}  // namespace onesum
