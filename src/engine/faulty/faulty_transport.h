// A transport with which things go wrong on purpose.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "engine/faulty/faults.h"
#include "engine/transport.h"

namespace onesum::engine {

struct FaultyOptions {
  int rank = 0;
  std::uint32_t epoch = 0;
  std::vector<Fault> faults;  // those of other ranks and epochs are left out
  // Makes the inner transport change a byte of the next message to a peer after its checksum was made, or
  // says that it cannot. Without it, or if it cannot, the byte is changed in the outbox, which no checksum
  // finds.
  std::function<bool(int peer)> damage_next;
};

class FaultyTransport final : public Transport {
 public:
  FaultyTransport(std::unique_ptr<Transport> inner, FaultyOptions options);

  // Operations counted so far in the beat that began last, and in all: to find out how many there are.
  std::uint64_t operations_in_beat() const noexcept { return beats_[last_].operations; }
  std::uint64_t operations() const noexcept { return operations_; }

  const Limits& limits() const noexcept override { return inner_->limits(); }
  NearBoxes near_boxes(int peer) const noexcept override { return inner_->near_boxes(peer); }
  std::byte* outbox(Box box, int peer, unsigned phase) noexcept override {
    return inner_->outbox(box, peer, phase);
  }
  const std::byte* inbox(Box box, int peer, unsigned phase) noexcept override {
    return inner_->inbox(box, peer, phase);
  }
  void begin(const Beat& beat, std::span<const Place> incoming) override;
  bool may_send(const Beat& beat, int peer) noexcept override { return inner_->may_send(beat, peer); }
  int reader_of_common(const Beat& beat) noexcept override { return inner_->reader_of_common(beat); }
  void send(const Beat& beat, const Place& place) override;
  void send_from(const Beat& beat, const Place& place, std::span<const Stretch> payload) override;
  bool is_taken(const Beat& beat) noexcept override { return inner_->is_taken(beat); }
  void receive_into(const Beat& beat, const Place& place, std::span<const Stretch> payload) override {
    inner_->receive_into(beat, place, payload);
  }
  Arrival arrival(const Beat& beat, const Place& place) override;
  void finish(const Beat& beat) override;
  bool is_flushed() noexcept override { return inner_->is_flushed(); }
  bool progress() override {
    inner_->progress();
    return true;  // faults have times of their own
  }
  bool arm() override { return inner_->arm(); }
  void disarm() noexcept override { inner_->disarm(); }
  int event_fd() const noexcept override { return inner_->event_fd(); }
  bool quit() noexcept override { return inner_->quit(); }

 private:
  struct Counted {  // of a beat under way
    std::uint64_t operations = 0;
    std::set<std::tuple<int, bool, std::uint32_t>> arrived;  // peers, whether they are common, numbers
  };

  Counted& counted(const Beat& beat) noexcept { return beats_[beat.number % beats_.size()]; }
  // Counts an operation, and does what happens at it to the process.
  void count(const Beat& beat);
  // What happens to the message that is sent now; it does not happen again.
  std::vector<FaultAction> due_for_message(const Beat& beat, const Place& place);
  void send(const Beat& beat, const Place& place, std::span<const FaultAction> due);
  void corrupt(const Beat& beat, const Place& place);

  std::unique_ptr<Transport> inner_;
  FaultyOptions options_;
  std::vector<Counted> beats_;  // by phase
  std::size_t last_ = 0;        // the phase that began last
  std::uint64_t operations_ = 0;
};

}  // namespace onesum::engine
