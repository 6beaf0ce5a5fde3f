// A transport that takes memory of the caller's, as late and as early as one may: what is sent from there is
// read only after some looks in vain, and what is received there is written as soon as it has come.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "engine/transport.h"

namespace onesum::exec {

class LendingTransport final : public engine::Transport {
 public:
  explicit LendingTransport(std::unique_ptr<engine::Transport> inner) : inner_(std::move(inner)) {}

  std::size_t lent() const { return lent_; }  // messages so far, both directions

  const engine::Limits& limits() const noexcept override { return inner_->limits(); }
  engine::NearBoxes near_boxes(int /*peer*/) const noexcept override { return {.lends = true}; }
  std::byte* outbox(engine::Box box, int peer, unsigned phase) noexcept override {
    return box == engine::Box::kPair ? inner_->outbox(box, peer, phase) : nullptr;
  }
  const std::byte* inbox(engine::Box box, int peer, unsigned phase) noexcept override {
    return box == engine::Box::kPair ? inner_->inbox(box, peer, phase) : nullptr;
  }
  void begin(const engine::Beat& beat, std::span<const engine::Place> incoming) override {
    inner_->begin(beat, incoming);
  }
  bool may_send(const engine::Beat& beat, int peer) noexcept override { return inner_->may_send(beat, peer); }
  void send(const engine::Beat& beat, const engine::Place& place) override {
    EXPECT_FALSE(place.is_lent);
    inner_->send(beat, place);
  }
  void send_from(const engine::Beat& beat, const engine::Place& place,
                 std::span<const engine::Stretch> payload) override {
    EXPECT_TRUE(place.is_lent);
    expect_apart(receives_, payload);
    ++lent_;
    sends_.push_back({beat, place, {payload.begin(), payload.end()}, kLooksInVain});
  }
  bool is_taken(const engine::Beat& beat) noexcept override {
    return std::ranges::none_of(sends_, [&](const Lent& sent) { return sent.beat.number == beat.number; });
  }
  void receive_into(const engine::Beat& beat, const engine::Place& place,
                    std::span<const engine::Stretch> payload) override {
    EXPECT_TRUE(place.is_lent);
    expect_apart(sends_, payload);
    ++lent_;
    receives_.push_back({beat, place, {payload.begin(), payload.end()}, 0});
    take();
  }
  engine::Arrival arrival(const engine::Beat& beat, const engine::Place& place) override {
    take();
    const auto is_this = [&](const Lent& receive) {
      return receive.beat.number == beat.number && receive.place == place;
    };
    if (place.is_lent && std::ranges::any_of(receives_, is_this)) return engine::Arrival::kNotYet;
    return inner_->arrival(beat, place);
  }
  void finish(const engine::Beat& beat) override { inner_->finish(beat); }
  bool is_flushed() noexcept override { return sends_.empty() && inner_->is_flushed(); }
  bool progress() override {
    inner_->progress();
    take();
    std::erase_if(sends_, [&](Lent& sent) {
      if (sent.looks-- > 0) return false;
      const auto phase = static_cast<unsigned>(sent.beat.number % limits().phases);
      std::byte* box = inner_->outbox(engine::Box::kPair, sent.place.peer, phase) + sent.place.offset;
      for (const engine::Stretch& stretch : sent.payload) box = std::ranges::copy(stretch, box).out;
      inner_->send(sent.beat, sent.place);
      return true;
    });
    return true;
  }
  bool arm() override { return sends_.empty() && inner_->arm(); }
  void disarm() noexcept override { inner_->disarm(); }
  int event_fd() const noexcept override { return inner_->event_fd(); }
  bool quit() noexcept override { return inner_->quit(); }

 private:
  static constexpr int kLooksInVain = 3;
  struct Lent {
    engine::Beat beat;
    engine::Place place;
    std::vector<engine::Stretch> payload;
    int looks;
  };

  // Nothing is sent from where something may be written meanwhile.
  static void expect_apart(std::span<const Lent> others, std::span<const engine::Stretch> payload) {
    for (const Lent& other : others) {
      for (const engine::Stretch& a : other.payload) {
        for (const engine::Stretch& b : payload) {
          EXPECT_TRUE(a.data() + a.size() <= b.data() || b.data() + b.size() <= a.data());
        }
      }
    }
  }

  void take() {
    std::erase_if(receives_, [&](const Lent& receive) {
      if (inner_->arrival(receive.beat, receive.place) != engine::Arrival::kHere) return false;
      const auto phase = static_cast<unsigned>(receive.beat.number % limits().phases);
      const std::byte* box = inner_->inbox(engine::Box::kPair, receive.place.peer, phase);
      box += receive.place.offset;
      for (const engine::Stretch& stretch : receive.payload) {
        std::copy_n(box, stretch.size(), stretch.begin());
        box += stretch.size();
      }
      return true;
    });
  }

  std::unique_ptr<engine::Transport> inner_;
  std::vector<Lent> sends_;
  std::vector<Lent> receives_;
  std::size_t lent_ = 0;
};

}  // namespace onesum::exec
