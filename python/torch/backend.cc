#include "backend.h"

#include <utility>

namespace onesum::bridge {
namespace {

c10::intrusive_ptr<c10d::Backend::Options> options_of(const Membership& membership) {
  auto options = c10::make_intrusive<c10d::Backend::Options>("onesum", membership.timeout);
  options->group_name = membership.name;
  for (int rank = 0; rank < membership.size; ++rank) {
    const bool is_world = membership.ranks.empty();
    options->global_ranks_in_group.push_back(
        static_cast<std::uint64_t>(is_world ? rank : membership.ranks[static_cast<std::size_t>(rank)]));
  }
  return options;
}

}  // namespace

struct OnesumBackend::Hooks {
  std::mutex mutex;
  std::map<std::int64_t, c10d::AbortHook> abort;
  std::map<std::int64_t, c10d::CompletionHook> completion;
  c10d::ErrorType error = c10d::ErrorType::SUCCESS;

  void hear(const CallWork& work, bool succeeded) {
    const std::lock_guard lock(mutex);
    try {
      if (succeeded) {
        for (const auto& [id, hook] : completion) hook({work.getCompletionKey(), work.getDuration()});
      } else {
        error = c10d::ErrorType::COMM_ERROR;
        for (const auto& [id, hook] : abort) hook();
      }
    } catch (const std::exception& failure) {  // the call is over all the same
      TORCH_WARN("onesum: a hook of the process group failed: ", failure.what());
    }
  }
};

OnesumBackend::OnesumBackend(const Membership& membership)
    : Backend(membership.rank, membership.size),
      options_(options_of(membership)),
      group_(std::make_shared<Group>(cluster_of(membership))),
      hooks_(std::make_shared<Hooks>()) {
  init();
}

OnesumBackend::~OnesumBackend() = default;

std::chrono::milliseconds OnesumBackend::timeout_or_default(std::chrono::milliseconds timeout) const {
  return timeout <= std::chrono::milliseconds(0) ? options_->timeout : timeout;
}

OnesumBackend::WorkPtr OnesumBackend::start(Call call) { return start(std::move(call), queue_, ++calls_); }

OnesumBackend::WorkPtr OnesumBackend::start(Call call, WorkQueue& queue, std::uint64_t number) {
  call.timeout = timeout_or_default(call.timeout);
  const bool is_async = call.is_async;
  auto observer = [hooks = hooks_](const CallWork& work, bool succeeded) { hooks->hear(work, succeeded); };
  auto work = c10::make_intrusive<CallWork>(std::move(call), rank_, number, options_->group_name, observer);
  bool is_coalesced = false;
  {
    const std::lock_guard lock(mutex_);
    is_coalesced = coalesced_.has_value();
    if (is_coalesced) coalesced_->push_back(work);
  }
  if (is_async || is_coalesced) {
    queue.post(work);
  } else {
    queue.run_now(*work);
  }
  return work;
}

void OnesumBackend::startCoalescing() {
  const std::lock_guard lock(mutex_);
  coalesced_.emplace();
}

OnesumBackend::WorkPtr OnesumBackend::endCoalescing() {
  const std::lock_guard lock(mutex_);
  TORCH_CHECK(coalesced_, "onesum: endCoalescing without startCoalescing");
  return all_of(std::exchange(coalesced_, std::nullopt).value(), rank_);
}

c10d::ErrorType OnesumBackend::getError() {
  const std::lock_guard lock(hooks_->mutex);
  return hooks_->error;
}

void OnesumBackend::registerAbortHook(std::int64_t id, c10d::AbortHook hook) {
  const std::lock_guard lock(hooks_->mutex);
  hooks_->abort[id] = std::move(hook);
}

void OnesumBackend::unregisterAbortHook(std::int64_t id) {
  const std::lock_guard lock(hooks_->mutex);
  hooks_->abort.erase(id);
}

void OnesumBackend::registerCompletionHook(std::int64_t id, c10d::CompletionHook hook) {
  const std::lock_guard lock(hooks_->mutex);
  hooks_->completion[id] = std::move(hook);
}

void OnesumBackend::unregisterCompletionHook(std::int64_t id) {
  const std::lock_guard lock(hooks_->mutex);
  hooks_->completion.erase(id);
}

void OnesumBackend::waitForPendingWorks() {
  std::vector<WorkQueue*> queues{&queue_};
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [way, queue] : ways_) queues.push_back(queue.get());
  }
  for (WorkQueue* queue : queues) queue->drain();
}

void OnesumBackend::shutdown() {
  waitForPendingWorks();
  group_->cluster->close();
}

void OnesumBackend::abort() { group_->cluster->close(); }

}  // namespace onesum::bridge
