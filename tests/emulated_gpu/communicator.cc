#include "emulated_gpu/communicator.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <random>
#include <utility>

#include <sys/socket.h>
#include <unistd.h>

#include "emulated_gpu/failures.h"
#include "emulated_gpu/settings.h"
#include "emulated_gpu/violations.h"
#include "emulated_gpu/world.h"

namespace onesum::emulated {
namespace {

struct Table {
  std::mutex mutex;
  std::map<ncclComm_t, std::shared_ptr<Communicator>> communicators;
  std::uintptr_t made = 0;
};

Table& table() {
  static Table& result = *new Table;
  return result;
}

}  // namespace

Communicator::~Communicator() {
  if (fd_ >= 0) ::close(fd_);
}

void Communicator::start() {
  std::thread([self = shared_from_this()] { self->live(); }).detach();
}

bool Communicator::meet() {
  const int fd = connect_to(traits_.meeting);
  const Frame hello{.type = FrameType::kHello,
                    .rank = traits_.rank,
                    .process = getpid(),
                    .device = traits_.device,
                    .root = traits_.ranks};
  const bool is_sent = fd >= 0 && send_frame(fd, hello);
  const std::lock_guard lock(mutex_);
  fd_ = fd;
  if (is_aborted_) return false;
  if (!is_sent) {
    meeting_ = error_ = ncclSystemError;
    changed_.notify_all();
  }
  return is_sent;
}

void Communicator::live() {
  const auto failure = take_failure(Failure::kCommInit);
  const bool is_met = meet();
  if (failure) {
    fail(static_cast<ncclResult_t>(*failure));
    ::shutdown(fd_, SHUT_RDWR);
    return;
  }
  Frame frame;
  std::vector<std::byte> payload;
  while (is_met && receive_frame(fd_, frame, payload)) take(frame, std::move(payload));
  const std::lock_guard lock(mutex_);
  is_dismissed_ = true;
  if (!is_aborted_ && !has_left_ && !meeting_has_left_) {
    if (error_ == ncclSuccess) error_ = ncclRemoteError;
    if (meeting_ == ncclInProgress) meeting_ = error_;
  }
  changed_.notify_all();
}

void Communicator::take(const Frame& frame, std::vector<std::byte> payload) {
  switch (frame.type) {
    case FrameType::kWelcome: {
      const std::lock_guard lock(mutex_);
      meeting_ = ncclSuccess;
      meeting_process_ = frame.process;
      break;
    }
    case FrameType::kResult: {
      const std::lock_guard lock(mutex_);
      result_ = std::move(payload);
      break;
    }
    case FrameType::kRefused: {
      report_violation("rank " + std::to_string(traits_.rank) + " of a communicator of " +
                       std::to_string(traits_.ranks) + ": " +
                       std::string(reinterpret_cast<const char*>(payload.data()), payload.size()));
      fail(ncclInvalidUsage);
      break;
    }
    case FrameType::kLeft: {
      const std::lock_guard lock(mutex_);
      if (frame.rank == traits_.rank) is_dismissed_ = true;
      if (frame.process == meeting_process_) meeting_has_left_ = true;
      break;
    }
    default:
      fail(ncclRemoteError);
  }
  changed_.notify_all();
}

void Communicator::fail(ncclResult_t error) {
  {
    const std::lock_guard lock(mutex_);
    if (error_ == ncclSuccess) error_ = error;
    if (meeting_ == ncclInProgress) meeting_ = error_;
  }
  changed_.notify_all();
}

ncclResult_t Communicator::wait_until_met(std::chrono::seconds at_most) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, at_most, [&] { return meeting_ != ncclInProgress || is_aborted_; });
  return meeting_;
}

bool Communicator::is_ready() {
  const std::lock_guard lock(mutex_);
  return meeting_ == ncclSuccess && !launched_at_ && !is_leaving_;
}

ncclResult_t Communicator::poll() {
  const std::lock_guard world_lock(world().mutex);
  std::unique_lock lock(mutex_);
  if (meeting_ != ncclSuccess) return meeting_;
  if (error_ != ncclSuccess) return error_;
  if (launched_at_) {
    if (std::chrono::steady_clock::now() < *launched_at_) return ncclInProgress;
    end_launches();
  }
  if (is_leaving_) {
    if (pending_ > 0) return ncclInProgress;
    leave(lock);
  }
  return ncclSuccess;
}

void Communicator::launch_on(const std::shared_ptr<Stream>& stream) {
  const std::lock_guard lock(mutex_);
  thread_local std::mt19937_64 random(settings().seed);
  launched_at_ =
      std::chrono::steady_clock::now() + std::chrono::microseconds(random() % (settings().delay_us + 100));
  launching_.push_back({stream, std::this_thread::get_id()});
  stream->launching.push_back(std::this_thread::get_id());
}

void Communicator::end_launches() {
  for (const Launch& launch : launching_) {
    std::vector<std::thread::id>& all = launch.stream->launching;
    all.erase(std::ranges::find(all, launch.by));
  }
  launching_.clear();
  launched_at_.reset();
}

Communicator::Turn Communicator::take_turn() {
  const std::lock_guard lock(mutex_);
  ++pending_;
  std::shared_ptr<void> pending(nullptr, [self = shared_from_this()](void*) {
    {
      const std::lock_guard inner(self->mutex_);
      --self->pending_;
    }
    self->changed_.notify_all();
  });
  return {turns_given_++, std::move(pending)};
}

void Communicator::run(const Collective& collective, const Turn& turn) {
  std::unique_lock lock(mutex_);
  const auto wait_for = [&](const auto& reached) {
    changed_.wait(lock, [&] { return is_aborted_ || reached(); });
    return !is_aborted_;
  };
  if (!wait_for([&] { return turns_over_ == turn.number; })) return;
  if (collective.mishap == Mishap::kAsyncError && error_ == ncclSuccess) {
    error_ = static_cast<ncclResult_t>(collective.error);
  }
  if (collective.mishap != Mishap::kNone) {
    wait_for([] { return false; });
    return;
  }
  lock.unlock();
  const auto brought = collective.brings == nullptr ? std::span<const std::byte>()
                                                    : std::span(collective.brings, collective.bytes);
  const bool is_sent = send_frame(fd_, collective.frame, brought);
  lock.lock();
  if (!wait_for([&] { return is_sent && result_; })) return;
  if (collective.gets != nullptr && !result_->empty()) {
    std::memcpy(collective.gets, result_->data(), collective.bytes);
  }
  result_.reset();
  ++turns_over_;
  lock.unlock();
  changed_.notify_all();
}

void Communicator::abort() {
  {
    const std::lock_guard world_lock(world().mutex);
    const std::lock_guard lock(mutex_);
    is_aborted_ = true;
    end_launches();
    if (fd_ >= 0) ::shutdown(fd_, SHUT_RDWR);
  }
  changed_.notify_all();
}

void Communicator::finalize(bool waits) {
  std::unique_lock lock(mutex_);
  is_leaving_ = true;
  if (!waits) return;
  changed_.wait(lock, [&] { return is_aborted_ || pending_ == 0; });
  leave(lock);
}

void Communicator::leave(std::unique_lock<std::mutex>& lock) {
  if (std::exchange(has_left_, true) || is_aborted_) return;
  send_frame(fd_, {.type = FrameType::kBye});
  // Or the process might end before everybody knows that this is no accident.
  changed_.wait(lock, [&] { return is_dismissed_; });
  ::shutdown(fd_, SHUT_RDWR);
}

ncclComm_t enlist(const std::shared_ptr<Communicator>& communicator) {
  const std::lock_guard lock(table().mutex);
  const std::uintptr_t number = 0x200000 + 16 * ++table().made;
  auto* const handle = reinterpret_cast<ncclComm_t>(number);  // NOLINT(performance-no-int-to-ptr)
  table().communicators[handle] = communicator;
  return handle;
}

std::shared_ptr<Communicator> find_communicator(ncclComm_t handle) {
  const std::lock_guard lock(table().mutex);
  const auto found = table().communicators.find(handle);
  return found == table().communicators.end() ? nullptr : found->second;
}

void forget_communicator(ncclComm_t handle) {
  const std::lock_guard lock(table().mutex);
  table().communicators.erase(handle);
}

std::size_t count_communicators() {
  const std::lock_guard lock(table().mutex);
  return table().communicators.size();
}

std::vector<std::shared_ptr<Communicator>> siblings_of(const Communicator& communicator) {
  std::vector<std::shared_ptr<Communicator>> result;
  const std::lock_guard lock(table().mutex);
  for (const auto& [handle, other] : table().communicators) {
    if (other.get() != &communicator && other->traits().meeting == communicator.traits().meeting) {
      result.push_back(other);
    }
  }
  return result;
}

}  // namespace onesum::emulated
