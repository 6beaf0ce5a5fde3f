#include "exec/mail.h"

#include "exec/rounds.h"

namespace onesum::exec {
namespace {

// Puts messages one after the other.
class Box {
 public:
  engine::Place add(int peer, std::size_t bytes, const engine::TinyBoxes& tiny = {}) {
    const std::uint32_t number = messages_++;
    if (tiny.bytes > 0 && bytes <= tiny.bytes) return {peer, number, number * tiny.stride, bytes, true};
    const engine::Place place{peer, number, end_ + engine::kMessageHeader, bytes};
    end_ += room_of(bytes);
    return place;
  }
  std::size_t end() const { return end_; }

 private:
  std::uint32_t messages_ = 0;
  std::size_t end_ = 0;
};

}  // namespace

Mail deal_mail(const plan::Plan& plan, const Messages& messages, std::span<const std::int64_t> bytes,
               OwnRank own, std::span<const engine::TinyBoxes> tiny) {
  const auto tiny_of = [&](std::int32_t rank) {
    return tiny.empty() ? engine::TinyBoxes{} : tiny[static_cast<std::size_t>(rank)];
  };
  std::int32_t ranks = 1;
  for (const std::int32_t rank : plan.device_rank) ranks = std::max(ranks, rank + 1);
  std::vector<Box> outgoing(static_cast<std::size_t>(ranks));
  std::vector<Box> incoming(static_cast<std::size_t>(ranks));
  Box local;
  Mail mail;
  mail.postings.resize(messages.all.size());
  for (std::size_t m = 0; m < messages.all.size(); ++m) {
    if (bytes[m] < 0) continue;
    const auto payload = static_cast<std::size_t>(bytes[m]);
    const plan::Channel& channel = plan.channel(messages.all[m].channel);
    const std::int32_t from = plan.rank_of(channel.from);
    const std::int32_t to = plan.rank_of(channel.to);
    Posting& posting = mail.postings[m];
    if (!own || (from == *own && to == *own)) {
      posting = {Way::kLocal, local.add(to, payload)};
    } else if (from == *own) {
      posting = {Way::kOutgoing, outgoing[static_cast<std::size_t>(to)].add(to, payload, tiny_of(to))};
    } else if (to == *own) {
      posting = {Way::kIncoming, incoming[static_cast<std::size_t>(from)].add(from, payload, tiny_of(from))};
    }
  }
  mail.local_bytes = local.end();
  return mail;
}

}  // namespace onesum::exec
