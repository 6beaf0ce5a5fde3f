#include "api/communicators.h"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include <onesum/error.h>

#include "api/engines.h"

namespace onesum::api {
namespace {

using engine::Communicator;
using engine::NativeEngine;

NativeEngine& native_engine() {
  const engine::GpuSearch& found = gpus();
  if (found.platform == nullptr) {
    throw Error(ErrorCode::kUnavailable, "native collectives need GPUs, and none was found: " + found.reason);
  }
  return found.platform->native();
}

// A communicator of this process alone, which joins anew after it had to be aborted: nobody else has to
// agree.
class OwnCommunicator final : public Communicator {
 public:
  explicit OwnCommunicator(std::vector<NativeEngine::Member> members)
      : members_(std::move(members)),
        inner_(native_engine().join(native_engine().make_id(), static_cast<int>(members_.size()), members_)) {
  }

  std::size_t devices() const noexcept override { return members_.size(); }
  int device(std::size_t number) const noexcept override { return members_[number].device; }
  engine::Queue& queue(std::size_t number) noexcept override { return inner_->queue(number); }
  bool is_ready() override {
    if (inner_->is_aborted()) rejoin(native_engine().make_id());
    return inner_->is_ready();
  }
  bool take_turn() override { return is_ready() && inner_->take_turn(); }
  void give(const engine::NativeWork& work) override { inner_->give(work); }
  void abort() noexcept override { inner_->abort(); }
  bool is_aborted() const noexcept override { return inner_->is_aborted(); }
  void rejoin(const engine::NativeId& id) override { inner_->rejoin(id); }

 private:
  std::vector<NativeEngine::Member> members_;
  std::unique_ptr<Communicator> inner_;
};

// The worker with the first device makes the id, and tells the others.
NativeEngine::Id common_id(Session& session, const std::set<int>& ranks, Clock::time_point deadline) {
  cluster::Epoch& epoch = session.epoch();
  const int first = *ranks.begin();
  NativeEngine::Id id;
  if (first == session.rank()) {
    id = native_engine().make_id();
    for (const int rank : ranks) {
      if (rank != first) epoch.send_set_up(rank, id);
    }
    return id;
  }
  const std::vector<std::byte> told = epoch.receive_set_up(first, deadline).payload;
  if (told.size() != id.size()) {
    throw Error(ErrorCode::kInternal,
                fmt::format("{} sent {} bytes in place of the {} of an id for native collectives",
                            epoch.name_of(first), told.size(), id.size()));
  }
  std::ranges::copy(told, id.begin());
  return id;
}

}  // namespace

std::vector<std::shared_ptr<Communicator>> Communicators::of(const planner::Planned& planned,
                                                             Session* session, Clock::time_point deadline) {
  std::vector<std::shared_ptr<Communicator>> communicators;
  for (const plan::Group& group : planned.plan->groups) {
    std::vector<std::string> names;
    std::vector<NativeEngine::Member> members;
    std::set<int> ranks;
    for (std::size_t i = 0; i < group.devices.size(); ++i) {
      const Device& device = planned.devices[static_cast<std::size_t>(group.devices[i])];
      const std::int32_t rank = planned.plan->rank_of(group.devices[i]);
      names.push_back(device.to_string());
      ranks.insert(rank);
      if (session != nullptr && rank != session->rank()) continue;
      members.push_back({device.index().value_or(0), static_cast<int>(i)});
    }
    std::shared_ptr<Communicator>& made = communicators.emplace_back();
    if (members.empty()) continue;
    std::shared_ptr<Communicator>& known = known_[names];
    if (known == nullptr) {
      if (members.size() == group.devices.size()) {
        known = std::make_shared<OwnCommunicator>(std::move(members));
      } else {
        known = native_engine().join(common_id(*session, ranks, deadline),
                                     static_cast<int>(group.devices.size()), members);
      }
    }
    made = known;
  }
  return communicators;
}

}  // namespace onesum::api
