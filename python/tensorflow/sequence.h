// A cluster and the calls on it, one after the other: a resource of TensorFlow.
//
// A call that somebody waits for at once runs on that thread, after all that came before it; any other on the
// cluster's own thread, which is started with the first of them, so that no thread of TensorFlow's waits for
// other workers. Threads: any.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include <tensorflow/core/framework/resource_base.h>

#include <onesum/cluster.h>

namespace onesum::tf_bridge {

class Sequence : public tensorflow::ResourceBase {
 public:
  explicit Sequence(Cluster cluster);
  ~Sequence() override;  // when all calls are done; from one of them, at once

  std::string DebugString() const override;
  const Cluster& cluster() const noexcept;

  // `call` must not throw. It may let go of the last reference to this object.
  void run_now(const std::function<void()>& call);
  void post(std::function<void()> call);

  // At the end of the process: closes all clusters, so that calls under way fail, and waits for these, but no
  // longer than this.
  static void leave_all(std::chrono::milliseconds longest);

 private:
  struct Core;
  struct All;
  std::shared_ptr<Core> core_;
};

}  // namespace onesum::tf_bridge
