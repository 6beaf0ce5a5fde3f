#include "exec/mail.h"

#include <algorithm>
#include <cstdint>
#include <set>

#include "exec/rounds.h"

namespace onesum::exec {
namespace {

using engine::Box;
using engine::Place;

// Puts messages one after the other.
class Row {
 public:
  Place add(int peer, std::size_t bytes) {
    const Place place{peer, messages_++, end_ + engine::kMessageHeader, bytes};
    end_ += room_of(bytes);
    return place;
  }
  // The payload lies elsewhere.
  std::uint32_t announce() { return messages_++; }
  std::size_t end() const { return end_; }

 private:
  std::uint32_t messages_ = 0;
  std::size_t end_ = 0;
};

class Dealer {
 public:
  Dealer(const plan::Plan& plan, const Messages& messages, std::span<const std::int64_t> bytes, OwnRank own,
         std::span<const engine::NearBoxes> near)
      : plan_(plan),
        messages_(messages),
        bytes_(bytes),
        own_(own),
        near_(near),
        readers_(bytes.size()),
        local_ones_(bytes.size()),
        common_ones_(bytes.size()) {
    std::int32_t ranks = 1;
    for (const std::int32_t rank : plan.device_rank) ranks = std::max(ranks, rank + 1);
    outgoing_.resize(static_cast<std::size_t>(ranks));
    incoming_.resize(static_cast<std::size_t>(ranks));
    common_.resize(static_cast<std::size_t>(ranks));
    for (std::size_t m = 0; m < bytes.size(); ++m) {
      if (is_between_near(m)) ++readers_[first_alike(m)];
    }
  }

  Mail deal() {
    Mail mail;
    mail.postings.resize(bytes_.size());
    for (std::size_t m = 0; m < bytes_.size(); ++m) {
      if (bytes_[m] >= 0) deal(m, mail.postings[m]);
    }
    mail.local_bytes = local_.end();
    mail.greetings = greetings();
    return mail;
  }

 private:
  static constexpr std::size_t kNobody = SIZE_MAX;
  struct Shared {
    Place place;
    std::size_t writer = kNobody;  // the message whose destination is written
  };

  std::int32_t from(std::size_t m) const {
    return plan_.rank_of(plan_.channel(messages_.all[m].channel).from);
  }
  std::int32_t to(std::size_t m) const { return plan_.rank_of(plan_.channel(messages_.all[m].channel).to); }
  std::size_t first_alike(std::size_t m) const { return static_cast<std::size_t>(messages_.alike[m]); }

  engine::NearBoxes near(std::int32_t rank) const {
    return near_.empty() ? engine::NearBoxes{} : near_[static_cast<std::size_t>(rank)];
  }

  // Between two processes that could both read a common outbox of this one.
  bool is_between_near(std::size_t m) const {
    const auto is_near = [&](std::int32_t rank) { return rank == own_ || near(rank).has_common; };
    return own_ && bytes_[m] >= 0 && from(m) != to(m) && is_near(from(m)) && is_near(to(m));
  }

  void deal(std::size_t m, Posting& posting) {
    if (!own_ || (from(m) == *own_ && to(m) == *own_)) {
      posting = local(m);
    } else if (from(m) == *own_) {
      posting = {Way::kOutgoing, place(m, to(m), outgoing_)};
      posting.is_written = !engine::is_common(posting.place.box) || common(m).writer == m;
    } else if (to(m) == *own_) {
      posting = {Way::kIncoming, place(m, from(m), incoming_)};
    } else if (is_common(m)) {
      common(m);  // takes its room
    }
  }

  Posting local(std::size_t m) {
    Shared& shared = local_ones_[first_alike(m)];
    if (shared.writer == kNobody) shared = {local_.add(to(m), payload(m)), m};
    return {Way::kLocal, shared.place, shared.writer == m};
  }

  // Worth it if there is more than one to read it.
  bool is_common(std::size_t m) const { return is_between_near(m) && readers_[first_alike(m)] > 1; }
  bool is_tiny(std::size_t m, std::int32_t peer) const {
    return near(peer).tiny_bytes > 0 && payload(m) <= near(peer).tiny_bytes;
  }

  // Of a message between this rank and the peer.
  Place place(std::size_t m, std::int32_t peer, std::vector<Row>& pairs) {
    if (!is_common(m)) return add(m, peer, peer, pairs[static_cast<std::size_t>(peer)], Box::kPair);
    Place place = common(m).place;
    place.peer = peer;
    return place;
  }

  // `mate`: a rank other than this one at either end.
  Place add(std::size_t m, std::int32_t peer, std::int32_t mate, Row& row, Box box) const {
    if (is_tiny(m, mate)) {
      const std::uint32_t number = row.announce();
      return {peer, number, number * near(mate).tiny_stride, payload(m),
              box == Box::kCommon ? Box::kCommonTiny : Box::kTiny};
    }
    Place place = row.add(peer, payload(m));
    place.box = box;
    return place;
  }

  // After all other messages of the two ranks.
  std::optional<Greetings> greetings() {
    const std::vector<int> circle = ranks_in_native_groups(plan_);
    const auto here = own_ ? std::ranges::find(circle, *own_) : circle.end();
    if (here == circle.end()) return std::nullopt;
    const int next = here + 1 == circle.end() ? circle.front() : *(here + 1);
    const int previous = here == circle.begin() ? circle.back() : *(here - 1);
    return Greetings{{Way::kOutgoing, empty(next, outgoing_)}, {Way::kIncoming, empty(previous, incoming_)}};
  }
  Place empty(std::int32_t peer, std::vector<Row>& pairs) const {
    Row& pair = pairs[static_cast<std::size_t>(peer)];
    if (near(peer).tiny_bytes == 0) return pair.add(peer, 0);
    const std::uint32_t number = pair.announce();
    return {peer, number, number * near(peer).tiny_stride, 0, Box::kTiny};
  }

  // Where it lies in its sender's common outbox.
  const Shared& common(std::size_t m) {
    Shared& shared = common_ones_[first_alike(m)];
    if (shared.writer == kNobody) {
      const std::int32_t mate = own_ == from(m) ? to(m) : from(m);
      shared = {add(m, to(m), mate, common_[static_cast<std::size_t>(from(m))], Box::kCommon), m};
    }
    return shared;
  }

  std::size_t payload(std::size_t m) const { return static_cast<std::size_t>(bytes_[m]); }

  const plan::Plan& plan_;
  const Messages& messages_;
  std::span<const std::int64_t> bytes_;
  OwnRank own_;
  std::span<const engine::NearBoxes> near_;
  std::vector<std::size_t> readers_;  // near ones, by the first of those alike
  std::vector<Row> outgoing_;         // by rank, as are these
  std::vector<Row> incoming_;
  std::vector<Row> common_;
  Row local_;
  std::vector<Shared> local_ones_;  // by the first of those alike, as are these
  std::vector<Shared> common_ones_;
};

}  // namespace

std::vector<int> ranks_in_native_groups(const plan::Plan& plan) {
  std::set<int> all;
  for (const plan::Group& group : plan.groups) {
    std::set<int> ranks;
    for (const std::int32_t device : group.devices) ranks.insert(plan.rank_of(device));
    if (ranks.size() > 1) all.merge(ranks);
  }
  return {all.begin(), all.end()};
}

Mail deal_mail(const plan::Plan& plan, const Messages& messages, std::span<const std::int64_t> bytes,
               OwnRank own, std::span<const engine::NearBoxes> near) {
  return Dealer(plan, messages, bytes, own, near).deal();
}

}  // namespace onesum::exec
