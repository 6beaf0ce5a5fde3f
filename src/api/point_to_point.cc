#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include <onesum/error.h>
#include <onesum/interrupt.h>
#include <onesum/point_to_point.h>

#include "api/cluster_state.h"
#include "api/cross_device_ops_impl.h"
#include "api/work.h"
#include "base/clock.h"
#include "base/interrupt.h"

namespace onesum {
namespace {

// From one worker to another with a tag.
struct WayKey {
  int from = 0;
  int to = 0;
  int tag = 0;
  friend auto operator<=>(const WayKey&, const WayKey&) = default;
};

// The same elements in one row: how they are arranged is each side's own affair.
Tensor in_one_row(const Tensor& tensor) {
  const auto elements = static_cast<std::int64_t>(tensor.shape().elements());
  return tensor.reshaped(Shape{elements});
}

Error closed() {
  return {ErrorCode::kAborted, "this worker has closed the cluster that its messages are on"};
}

// Ends messages when the cluster is closed here: their own group is not.
struct CloseCheck {
  const Cluster& cluster;
  const InterruptCheck* caller;  // what the caller wants to be asked

  void ask() const {
    if (caller != nullptr) (*caller)();
    check_open();
  }
  void check_open() const {
    if (cluster.state().session->is_closed()) throw closed();
  }
};

// One way. Its messages are in the order of the queue, whose first one makes the group.
class Way {
 public:
  Way(Cluster cluster, const WayKey& key) : cluster_(std::move(cluster)), key_(key) {}

  const Cluster& queue() const noexcept { return queue_; }

  // In its turn of the queue.
  void carry(const Tensor& tensor, const CommunicationOptions& options, Clock::time_point start) {
    if (const std::exception_ptr failure = first_failure()) {
      if (ops_) Cluster(ops_->cluster()).close();  // so that the other side hears of it
      std::rethrow_exception(failure);
    }
    try {
      carry_next(tensor, options, start);
    } catch (const Error&) {
      // Closing the cluster may show as something else first, such as workers that leave because of it.
      const bool is_closed = cluster_.state().session->is_closed();
      fail(is_closed ? std::make_exception_ptr(closed()) : std::current_exception());
      std::rethrow_exception(first_failure());
    } catch (...) {
      fail(std::current_exception());
      throw;
    }
  }

  // A message that did not come to its turn, or to its end, is one that the other side may count: nothing
  // that comes after it would be what the other side takes it for.
  void fail(std::exception_ptr failure) {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = std::move(failure);
  }

 private:
  std::exception_ptr first_failure() {
    const std::lock_guard lock(mutex_);
    return failure_;
  }

  void carry_next(const Tensor& tensor, const CommunicationOptions& options, Clock::time_point start) {
    const CloseCheck closing{cluster_, innermost_check()};
    const InterruptCheck check([&closing] { closing.ask(); });
    closing.check_open();
    const Clock::time_point deadline = api::deadline_of(options, start);
    if (!ops_) meet(deadline);
    CommunicationOptions rest;
    rest.timeout = std::max(std::chrono::duration_cast<std::chrono::milliseconds>(deadline - now()),
                            std::chrono::milliseconds(1));
    const PerReplica row(in_one_row(tensor));
    const bool sends = cluster_.rank() == key_.from;
    ops_->run(Collective::broadcast({sends ? row : PerReplica()}, {sends ? PerReplica() : row}, 0), rest);
  }

  void meet(Clock::time_point deadline) {
    const int ranks[] = {key_.from, key_.to};
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - now());
    const std::string name = fmt::format("messages with tag {}", key_.tag);
    ops_.emplace(std::nullopt, AccumulationFn(), cluster_.group(ranks, name, left));
  }

  Cluster cluster_;
  const WayKey key_;
  const Cluster queue_ = Cluster::local();
  std::optional<ReductionToOneDevice> ops_;
  std::mutex mutex_;  // of
  std::exception_ptr failure_;
};

}  // namespace

struct PointToPoint::Impl {
  explicit Impl(Cluster on) : cluster(std::move(on)) {}

  std::shared_ptr<Way> way(const WayKey& key) {
    const std::lock_guard lock(mutex);
    std::shared_ptr<Way>& found = ways[key];
    if (!found) found = std::make_shared<Way>(cluster, key);
    return found;
  }

  std::shared_ptr<Way> way_of(const Tensor& tensor, int other, int tag, bool sends) {
    const char* const what = sends ? "send" : "recv";
    if (!tensor) {
      throw Error(ErrorCode::kInvalidArgument, fmt::format("{}: refers to no tensor", what));
    }
    if (other < 0 || other >= cluster.size() || other == cluster.rank()) {
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("{} {} worker {}; expected another one of 0 to {} than this one, {}", what,
                              sends ? "to" : "from", other, cluster.size() - 1, cluster.rank()));
    }
    return way(sends ? WayKey{cluster.rank(), other, tag} : WayKey{other, cluster.rank(), tag});
  }

  const Cluster cluster;
  std::mutex mutex;  // of ways
  std::map<WayKey, std::shared_ptr<Way>> ways;
};

namespace {

void carry_now(Way& way, const Tensor& tensor, const CommunicationOptions& options) {
  planner::validate_options(ReduceOp::kSum, options);
  const Clock::time_point start = now();
  std::optional<cluster::Sequence::Turn> turn;
  try {
    turn.emplace(way.queue().state().sequence, api::deadline_of(options, start));
  } catch (...) {
    way.fail(std::current_exception());
    throw;
  }
  way.carry(tensor, options, start);
}

Work carry_later(std::shared_ptr<Way> way, const Tensor& tensor, const CommunicationOptions& options) {
  planner::validate_options(ReduceOp::kSum, options);
  const Cluster& queue = way->queue();
  return api::start_work(queue, [way = std::move(way), tensor, options, start = now()] {
    way->carry(tensor, options, start);
    return std::vector<Mirrored>();
  });
}

}  // namespace

PointToPoint::PointToPoint(Cluster cluster) {
  if (!cluster.state().session) {
    throw Error(ErrorCode::kInvalidArgument,
                "PointToPoint: all workers of the cluster are in this process; messages go between processes "
                "(broadcast copies from device to device)");
  }
  impl_ = std::make_shared<Impl>(std::move(cluster));
}

PointToPoint::PointToPoint(PointToPoint&&) noexcept = default;
PointToPoint& PointToPoint::operator=(PointToPoint&&) noexcept = default;
PointToPoint::~PointToPoint() = default;

void PointToPoint::send(const Tensor& tensor, int to, int tag, const CommunicationOptions& options) {
  carry_now(*impl_->way_of(tensor, to, tag, true), tensor, options);
}

void PointToPoint::recv(const Tensor& tensor, int from, int tag, const CommunicationOptions& options) {
  carry_now(*impl_->way_of(tensor, from, tag, false), tensor, options);
}

Work PointToPoint::start_send(const Tensor& tensor, int to, int tag, const CommunicationOptions& options) {
  return carry_later(impl_->way_of(tensor, to, tag, true), tensor, options);
}

Work PointToPoint::start_recv(const Tensor& tensor, int from, int tag, const CommunicationOptions& options) {
  return carry_later(impl_->way_of(tensor, from, tag, false), tensor, options);
}

}  // namespace onesum
