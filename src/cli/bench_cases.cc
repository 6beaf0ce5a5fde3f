#include "cli/bench_cases.h"

#include <onesum/cross_device_ops.h>

namespace onesum::cli {
namespace {

std::vector<PerReplica> copied(std::span<const PerReplica> values) { return {values.begin(), values.end()}; }

class PlainInto : public Case {
 public:
  PlainInto(CrossDeviceOps& ops, Workspace& workspace, Place place)
      : ops_(ops),
        workspace_(workspace),
        results_(copied(place == Place::kIn ? workspace.values() : workspace.results())) {}

  void call(std::size_t times) override {
    const ReduceOp op = workspace_.workload().op;
    for (std::size_t i = 0; i < times; ++i) ops_.batch_reduce_into(op, workspace_.values(), results_);
  }

  Difference difference(const Pattern& pattern) override {
    workspace_.reset(pattern);
    call(1);
    return Workspace::difference(pattern, results_);
  }

 private:
  CrossDeviceOps& ops_;
  Workspace& workspace_;
  std::vector<PerReplica> results_;
};

class PreparedInto : public Case {
 public:
  PreparedInto(CrossDeviceOps& ops, Workspace& workspace, Place place)
      : workspace_(workspace),
        results_(copied(place == Place::kIn ? workspace.values() : workspace.results())),
        prepared_(ops.prepare(workspace.workload().op, workspace.values(), results_)) {}

  void call(std::size_t times) override {
    for (std::size_t i = 0; i < times; ++i) prepared_.run();
  }

  Difference difference(const Pattern& pattern) override {
    workspace_.reset(pattern);
    call(1);
    return Workspace::difference(pattern, results_);
  }

 private:
  Workspace& workspace_;
  std::vector<PerReplica> results_;
  PreparedReduce prepared_;
};

class Fresh : public Case {
 public:
  Fresh(CrossDeviceOps& ops, Workspace& workspace) : ops_(ops), workspace_(workspace) {
    for (const PerReplica& value : workspace.values()) pairs_.push_back({value, value});
  }

  void call(std::size_t times) override {
    const ReduceOp op = workspace_.workload().op;
    for (std::size_t i = 0; i < times; ++i) ops_.batch_reduce(op, pairs_);
  }

  Difference difference(const Pattern& pattern) override {
    workspace_.reset(pattern);
    return Workspace::difference(pattern, ops_.batch_reduce(workspace_.workload().op, pairs_));
  }

 private:
  CrossDeviceOps& ops_;
  Workspace& workspace_;
  std::vector<ValueDestination> pairs_;
};

}  // namespace

std::unique_ptr<Case> into_case(CrossDeviceOps& ops, Workspace& workspace, Place place, Call call) {
  if (call == Call::kPrepared) return std::make_unique<PreparedInto>(ops, workspace, place);
  return std::make_unique<PlainInto>(ops, workspace, place);
}

std::unique_ptr<Case> fresh_case(CrossDeviceOps& ops, Workspace& workspace) {
  return std::make_unique<Fresh>(ops, workspace);
}

}  // namespace onesum::cli
