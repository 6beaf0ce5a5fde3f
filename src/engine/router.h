// A transport made of two: each peer is reached through the one or the other.
//
// Near peers are on this machine (shared memory), far ones are not (the network). Both transports number the
// ranks alike and have the same limits; each may be without some of them.
#pragma once

#include <memory>
#include <vector>

#include "base/fd.h"
#include "engine/transport.h"

namespace onesum::engine {

class Router final : public Transport {
 public:
  // `is_near` by rank; that of this rank itself does not matter. Throws invalid_argument if the limits
  // differ, resource_exhausted if there are no descriptors left.
  Router(std::unique_ptr<Transport> near, std::unique_ptr<Transport> far, std::vector<bool> is_near);

  const Limits& limits() const noexcept override { return near_->limits(); }
  NearBoxes near_boxes(int peer) const noexcept override { return to(peer).near_boxes(peer); }
  std::byte* outbox(Box box, int peer, unsigned phase) noexcept override {
    return to(peer).outbox(box, peer, phase);
  }
  const std::byte* inbox(Box box, int peer, unsigned phase) noexcept override {
    return to(peer).inbox(box, peer, phase);
  }
  void begin(const Beat& beat, std::span<const Place> incoming) override;
  bool may_send(const Beat& beat, int peer) noexcept override { return to(peer).may_send(beat, peer); }
  int reader_of_common(const Beat& beat) noexcept override { return near_->reader_of_common(beat); }
  void send(const Beat& beat, const Place& place) override { to(place.peer).send(beat, place); }
  void send_from(const Beat& beat, const Place& place, std::span<const Stretch> payload) override {
    to(place.peer).send_from(beat, place, payload);
  }
  bool is_taken(const Beat& beat) noexcept override { return near_->is_taken(beat) && far_->is_taken(beat); }
  void receive_into(const Beat& beat, const Place& place, std::span<const Stretch> payload) override {
    to(place.peer).receive_into(beat, place, payload);
  }
  Arrival arrival(const Beat& beat, const Place& place) override {
    return to(place.peer).arrival(beat, place);
  }
  void finish(const Beat& beat) override;
  bool is_flushed() noexcept override;
  bool progress() override;
  bool arm() override;
  void disarm() noexcept override;
  int event_fd() const noexcept override { return events_.get(); }
  bool quit() noexcept override;

 private:
  Transport& to(int peer) const noexcept { return is_near_[static_cast<std::size_t>(peer)] ? *near_ : *far_; }

  std::unique_ptr<Transport> near_;
  std::unique_ptr<Transport> far_;
  std::vector<bool> is_near_;
  Fd events_;                                      // both transports' in one
  std::vector<std::vector<Place>> near_incoming_;  // of the beats under way, by phase
  std::vector<std::vector<Place>> far_incoming_;
};

}  // namespace onesum::engine
