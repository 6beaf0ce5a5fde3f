#include "collective/ring.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "collective/party.h"

namespace onesum::collective {
namespace {

using plan::Chunks;

// One party's view of the ring.
class Seat {
 public:
  Seat(Draft& draft, const Level& level, const std::vector<std::size_t>& order, std::size_t position,
       std::uint32_t shard)
      : draft_(draft),
        level_(level),
        shard_(shard),
        position_(position),
        size_(order.size()),
        party_(order[position]),
        device_(level.parties[party_].device),
        successor_(level.parties[order[(position + 1) % size_]].device),
        predecessor_(level.parties[order[(position + size_ - 1) % size_]].device),
        first_is_raw_(level.parties[order[(position + size_ - 1) % size_]].terms.front().raw),
        lane_(draft.add_lane(draft.rank_of(device_))),
        own_(open_party(draft, lane_, level, party_, shard).front()),
        outputs_(draft.outputs(level.parties[party_].destinations)),
        onward_(outputs_),
        sum_(sum_of(Term{{}, {{-1, 0}}, false}, own_)) {
    onward_.push_back(-1);
  }

  std::size_t size() const { return size_; }

  // The segment at hand at a tick of the first phase: positions count backwards from here.
  std::size_t segment(std::size_t back) const { return (position_ + 2 * size_ - back) % size_; }

  void alone() { draft_.finish(lane_, device_, own_, unit(0), outputs_); }

  void close() { close_party(draft_, lane_, level_, party_, shard_); }

  // Of an all-gather: the own segment goes where all will be.
  void share() { draft_.copy(lane_, device_, own_.leaves.front().number, unit(position_), onward()); }

  void begin() { send(own_, unit(segment(1))); }

  // Adds the own part to what arrives, and passes it on; the last time it is finished.
  void add(std::size_t tick) {
    const Chunks run = unit(segment(2 + tick));
    const Draft::ReceivingEnd& end = incoming(partial_element(tick));
    draft_.receive(lane_, end, run);
    sum_.leaves.front().number = end.view;
    if (tick + 2 < size_) {
      send(sum_, run);
    } else {
      draft_.finish(lane_, device_, sum_, run, draft_.gathers() ? onward() : outputs_);
    }
    draft_.release(lane_, end);
    ++received_;
  }

  // Keeps a finished segment, and passes it on unless it has been everywhere.
  void keep(std::size_t tick) {
    const Chunks run = unit(segment(1 + tick));
    const Draft::ReceivingEnd& end = incoming(draft_.task().output);
    draft_.receive(lane_, end, run);
    const bool is_last = tick + 2 == size_;
    draft_.copy(lane_, device_, end.view, run, is_last ? outputs_ : onward());
    draft_.release(lane_, end);
    ++received_;
  }

 private:
  Chunks unit(std::size_t number) const { return draft_.units(shard_, static_cast<std::uint32_t>(number)); }

  // A view is held while the next message goes out: two channels to each neighbour, used in turn. Types have
  // channels of their own.
  std::int32_t number(std::size_t count, Element element) const {
    const auto parity = static_cast<std::int32_t>(count % 2);
    if (element == draft_.task().accumulator) return parity;
    return parity + (element == draft_.task().output ? 2 : 4);
  }
  // The slot of the next message; it counts as sent.
  std::int32_t outgoing(Element element) {
    const std::int32_t channel = number(sent_++, element);
    std::int32_t& slot = slots_[static_cast<std::size_t>(channel)];
    if (slot < 0) slot = draft_.slot(shard_, {device_, successor_, channel, element});
    return slot;
  }
  const Draft::ReceivingEnd& incoming(Element element) {
    const std::int32_t channel = number(received_, element);
    Draft::ReceivingEnd& end = ends_[static_cast<std::size_t>(channel)];
    if (end.channel < 0) end = draft_.receiving_end(shard_, {predecessor_, device_, channel, element});
    return end;
  }

  void send(const Term& term, const Chunks& run) {
    const std::int32_t slot = outgoing(draft_.travels_in(term, level_.narrow));
    draft_.form(lane_, device_, term, run, std::span(&slot, 1));
  }

  Element partial_element(std::size_t tick) const {
    const Term partial{{}, {}, tick == 0 && first_is_raw_};
    return draft_.travels_in(partial, level_.narrow);
  }

  // The own results, and the successor.
  const std::vector<std::int32_t>& onward() {
    onward_.back() = outgoing(draft_.task().output);
    return onward_;
  }

  Draft& draft_;
  const Level& level_;
  std::uint32_t shard_;
  std::size_t position_, size_, party_;
  std::int32_t device_, successor_, predecessor_;
  bool first_is_raw_;
  std::int32_t lane_;
  Term own_;
  std::vector<std::int32_t> outputs_;
  std::vector<std::int32_t> onward_;  // the same and a slot
  Term sum_;                          // of what arrives and the own part
  std::size_t sent_ = 0, received_ = 0;
  // By number of the channel.
  std::array<std::int32_t, 6> slots_ = {-1, -1, -1, -1, -1, -1};
  std::array<Draft::ReceivingEnd, 6> ends_;
};

// A lane pauses after some ticks and not after each: whoever resumes it finds its state in no cache.
bool is_end_of_stretch(std::size_t tick, std::size_t size) {
  constexpr std::size_t kTicks = 32;
  return tick % kTicks == kTicks - 1 || tick + 2 == size;
}

}  // namespace

std::vector<std::vector<std::size_t>> ring_orders(const Level& level, const Topology& topology,
                                                  std::uint32_t shards) {
  std::map<std::int32_t, std::vector<std::size_t>> by_rank;
  for (std::size_t p = 0; p < level.parties.size(); ++p) {
    by_rank[topology.rank_of(level.parties[p].device)].push_back(p);
  }
  std::vector<std::vector<std::size_t>> orders(shards);
  for (std::uint32_t shard = 0; shard < shards; ++shard) {
    for (const auto& [rank, parties] : by_rank) {
      const std::size_t devices = parties.size();
      const std::size_t turn = std::max<std::size_t>(1, devices / std::min<std::size_t>(shards, devices));
      const std::size_t rotation = (shard % devices) * turn;
      for (std::size_t i = 0; i < devices; ++i) orders[shard].push_back(parties[(i + rotation) % devices]);
    }
  }
  return orders;
}

Script ring_lane(Draft& draft, const Level& level, const std::vector<std::size_t>& order,
                 std::size_t position, std::uint32_t shard) {
  Seat seat(draft, level, order, position, shard);
  if (seat.size() == 1) {
    seat.alone();
    seat.close();
    co_return;
  }
  if (draft.scatters()) {
    seat.begin();
    for (std::size_t tick = 0; tick + 1 < seat.size(); ++tick) {
      seat.add(tick);
      if (is_end_of_stretch(tick, seat.size())) co_await pause;
    }
  } else {
    seat.share();
  }
  if (!draft.gathers()) co_return;
  for (std::size_t tick = 0; tick + 1 < seat.size(); ++tick) {
    seat.keep(tick);
    if (is_end_of_stretch(tick, seat.size())) co_await pause;
  }
  seat.close();
}

void write_ring(Draft& draft, const Level& level, const std::vector<std::size_t>& order,
                std::uint32_t shard) {
  for (std::size_t position = 0; position < order.size(); ++position) {
    const std::int32_t device = level.parties[order[position]].device;
    if (draft.writes(draft.rank_of(device))) ring_lane(draft, level, order, position, shard).finish();
  }
}

}  // namespace onesum::collective
