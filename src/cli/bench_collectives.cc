#include "cli/bench_collectives.h"

#include <optional>
#include <utility>
#include <vector>

#include <onesum/cross_device_ops.h>
#include <onesum/point_to_point.h>

namespace onesum::cli {
namespace {

// What a part of a result holds: the sum, or a replica, from some element on.
struct Expected {
  std::optional<std::size_t> replica;  // none: the sum
  std::size_t first = 0;               // elements of the tensor before
};

// How the tensors of a workspace take part in a collective.
class Roles {
 public:
  Roles(const Workspace& workspace, Place place)
      : workspace_(workspace), kind_(workspace.workload().collective), is_in_place_(place == Place::kIn) {}

  Collective call() const {
    Collective call{kind_, workspace_.workload().op, 0, {}, {}};
    call.has_equal_parts = true;
    for (std::size_t t = 0; t < workspace_.values().size(); ++t) {
      call.values.push_back(value_of(t));
      call.results.push_back(result_of(t));
    }
    return call;
  }

  // Of a part of the result of the replica with this number; `part` counts where results are collected.
  Expected expected(std::size_t replica, std::size_t part, std::size_t elements) const {
    switch (kind_) {
      case CollectiveKind::kReduceScatter:
        return {{}, replica * elements};
      case CollectiveKind::kScatter:
        return {0, replica * elements};
      case CollectiveKind::kAllGather:
        return {part, is_in_place_ ? part * elements : 0};
      case CollectiveKind::kAllToAll:
        return {part, replica * elements};
      default:
        return {0, 0};  // a broadcast
    }
  }

  bool is_collected() const {
    return kind_ == CollectiveKind::kAllGather || kind_ == CollectiveKind::kAllToAll;
  }

 private:
  std::size_t replicas() const { return workspace_.workload().replicas(); }
  std::size_t number_of(std::size_t own) const { return workspace_.workload().first_own() + own; }

  Tensor part_of(const Tensor& whole, std::size_t number) const {
    const std::size_t elements = whole.shape().elements() / replicas();
    auto* const memory = static_cast<std::byte*>(whole.memory()) + number * elements * size_of(whole.dtype());
    return Tensor::borrow(memory, whole.dtype(), Shape{static_cast<std::int64_t>(elements)}, whole.device());
  }

  PerReplica value_of(std::size_t tensor) const {
    const PerReplica& wholes = workspace_.values()[tensor];
    const bool has_root = kind_ == CollectiveKind::kBroadcast || kind_ == CollectiveKind::kScatter;
    if (has_root) return number_of(0) == 0 ? PerReplica(wholes.tensor(0)) : PerReplica();
    if (kind_ != CollectiveKind::kAllGather) return wholes;
    std::vector<Tensor> parts;
    for (std::size_t own = 0; own < wholes.size(); ++own)
      parts.push_back(part_of(wholes.tensor(own), is_in_place_ ? number_of(own) : 0));
    return PerReplica(std::move(parts));
  }

  PerReplica result_of(std::size_t tensor) const {
    const PerReplica& wholes = is_in_place_ ? workspace_.values()[tensor] : workspace_.results()[tensor];
    if (kind_ != CollectiveKind::kReduceScatter && kind_ != CollectiveKind::kScatter) return wholes;
    std::vector<Tensor> parts;
    for (std::size_t own = 0; own < wholes.size(); ++own)
      parts.push_back(part_of(wholes.tensor(own), is_in_place_ ? number_of(own) : 0));
    return PerReplica(std::move(parts));
  }

  const Workspace& workspace_;
  CollectiveKind kind_;
  bool is_in_place_;
};

class CollectiveCall : public Case {
 public:
  CollectiveCall(CrossDeviceOps& ops, Workspace& workspace, Place place, Call call)
      : ops_(ops), workspace_(workspace), roles_(workspace, place), call_(roles_.call()) {
    if (call == Call::kPrepared) prepared_.emplace(ops.prepare(call_));
  }

  void call(std::size_t times) override {
    for (std::size_t i = 0; i < times; ++i) prepared_ ? prepared_->run() : ops_.run(call_);
  }

  Difference difference(const Pattern& pattern) override {
    workspace_.reset(pattern);
    call(1);
    const std::size_t parts = roles_.is_collected() ? workspace_.workload().replicas() : 1;
    Difference all;
    for (std::size_t t = 0; t < call_.results.size(); ++t) {
      for (std::size_t own = 0; own < call_.results[t].size(); ++own) {
        const std::size_t replica = workspace_.workload().first_own() + own;
        const Tensor& result = call_.results[t].tensor(own);
        for (std::size_t part = 0; part < parts; ++part) {
          const std::size_t elements = result.shape().elements() / parts;
          const Expected should_be = roles_.expected(replica, part, elements);
          Workspace::add(pattern.difference_from(should_be.replica,
                                                 Workspace::bytes_of(result, part * elements, elements),
                                                 t + should_be.first),
                         t, result, all);
        }
      }
    }
    return all;
  }

 private:
  CrossDeviceOps& ops_;
  Workspace& workspace_;
  Roles roles_;
  Collective call_;
  std::optional<PreparedReduce> prepared_;
};

class MessageCall : public Case {
 public:
  MessageCall(const Cluster& cluster, Workspace& workspace)
      : messages_(cluster),
        workspace_(workspace),
        next_((cluster.rank() + 1) % cluster.size()),
        before_((cluster.rank() + cluster.size() - 1) % cluster.size()) {}

  void call(std::size_t times) override {
    for (std::size_t i = 0; i < times; ++i) {
      for (std::size_t t = 0; t < workspace_.values().size(); ++t) {
        Work sent = messages_.start_send(workspace_.values()[t].tensor(), next_);
        messages_.recv(workspace_.results()[t].tensor(), before_);
        sent.wait();
      }
    }
  }

  Difference difference(const Pattern& pattern) override {
    workspace_.reset(pattern);
    call(1);
    Difference all;
    for (std::size_t t = 0; t < workspace_.results().size(); ++t) {
      const Tensor& result = workspace_.results()[t].tensor();
      Workspace::add(pattern.difference_from(static_cast<std::size_t>(before_),
                                             Workspace::bytes_of(result, 0, result.shape().elements()), t),
                     t, result, all);
    }
    return all;
  }

 private:
  PointToPoint messages_;
  Workspace& workspace_;
  int next_;
  int before_;
};

}  // namespace

std::unique_ptr<Case> collective_case(CrossDeviceOps& ops, Workspace& workspace, Place place, Call call) {
  return std::make_unique<CollectiveCall>(ops, workspace, place, call);
}

std::unique_ptr<Case> message_case(const Cluster& cluster, Workspace& workspace) {
  return std::make_unique<MessageCall>(cluster, workspace);
}

}  // namespace onesum::cli
