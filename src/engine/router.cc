#include "engine/router.h"

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include <sys/epoll.h>

#include <onesum/error.h>

namespace onesum::engine {
namespace {

std::string described(const Limits& limits) {
  return std::to_string(limits.bytes) + " bytes, " + std::to_string(limits.common_bytes) + " in common, " +
         std::to_string(limits.messages) + " messages, " + std::to_string(limits.phases) + " copies";
}

void add(int events, const Transport& transport) {
  epoll_event event{};
  event.events = EPOLLIN;
  if (events >= 0 && epoll_ctl(events, EPOLL_CTL_ADD, transport.event_fd(), &event) == 0) return;
  throw Error(ErrorCode::kResourceExhausted,
              std::string("cannot wait for two transports at once: ") + std::strerror(errno));
}

}  // namespace

Router::Router(std::unique_ptr<Transport> near, std::unique_ptr<Transport> far, std::vector<bool> is_near)
    : near_(std::move(near)),
      far_(std::move(far)),
      is_near_(std::move(is_near)),
      events_(epoll_create1(EPOLL_CLOEXEC)),
      near_incoming_(near_->limits().phases),
      far_incoming_(near_->limits().phases) {
  if (near_->limits() != far_->limits()) {
    throw Error(ErrorCode::kInvalidArgument, "transports of different limits: " + described(near_->limits()) +
                                                 " near, " + described(far_->limits()) + " far");
  }
  add(events_.get(), *near_);
  add(events_.get(), *far_);
}

void Router::begin(const Beat& beat, std::span<const Place> incoming) {
  std::vector<Place>& near = near_incoming_[beat.number % limits().phases];
  std::vector<Place>& far = far_incoming_[beat.number % limits().phases];
  near.clear();
  far.clear();
  for (const Place& place : incoming) {
    (is_near_[static_cast<std::size_t>(place.peer)] ? near : far).push_back(place);
  }
  near_->begin(beat, near);
  far_->begin(beat, far);
}

void Router::finish(const Beat& beat) {
  near_->finish(beat);
  far_->finish(beat);
}

bool Router::is_flushed() noexcept { return near_->is_flushed() && far_->is_flushed(); }

bool Router::progress() {
  const bool near = near_->progress();
  const bool far = far_->progress();
  return near || far;
}

// Both, also if the first has something to do: disarm() does not know which were armed.
bool Router::arm() {
  const bool near = near_->arm();
  const bool far = far_->arm();
  return near && far;
}

void Router::disarm() noexcept {
  near_->disarm();
  far_->disarm();
}

bool Router::quit() noexcept {
  const bool near = near_->quit();
  const bool far = far_->quit();
  return near && far;
}

}  // namespace onesum::engine
