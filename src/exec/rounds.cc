#include "exec/rounds.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include <onesum/error.h>

#include "exec/mail.h"

namespace onesum::exec {
namespace {

using plan::Contract;
using plan::PackMember;
using plan::PackTable;

// Elements of a chunk in a round that is not the last one: kernels and messages then begin at whole cache
// lines.
constexpr std::size_t kGrain = 64;

// Appends a run of elements of a pack.
void append_run(const PackTable& whole, plan::Extent run, PackTable& part) {
  std::size_t member_begin = 0;
  for (const PackMember& member : whole.members) {
    const std::size_t first = std::max(run.offset, member_begin);
    const std::size_t last = std::min(run.offset + run.length, member_begin + member.elements);
    if (first < last) {
      PackMember cut = member;
      cut.elements = last - first;
      cut.input_offset += first - member_begin;
      cut.output_offset += first - member_begin;
      part.members.push_back(cut);
    }
    member_begin += member.elements;
  }
}

// Some rows of a concatenation, whole.
Part rows_of(std::int32_t pack, const PackTable& whole, std::size_t begin, std::size_t end) {
  Part part{pack, whole};
  part.table.first_row += begin;
  part.table.outer = end - begin;
  return part;
}

// A part of what one replica brings to one row.
Part part_of_row(std::int32_t pack, const PackTable& whole, std::size_t row, std::size_t replica,
                 plan::Extent run) {
  const std::size_t before = std::accumulate(
      whole.counts.begin(), whole.counts.begin() + static_cast<std::ptrdiff_t>(replica), std::size_t{0});
  Part part{pack, whole};
  std::ranges::fill(part.table.counts, 0);
  part.table.counts[replica] = run.length;
  part.table.outer = 1;
  part.table.first_row = 0;
  PackMember& member = part.table.members.front();
  const std::size_t full_row = member.elements;
  member.elements = run.length;
  member.input_offset += (whole.first_row + row) * whole.counts[replica] + run.offset;
  member.output_offset += (whole.first_row + row) * full_row + before + run.offset;
  return part;
}

// A rank's messages to itself need no outbox, but memory of its own, which is bounded too.
engine::Limits inside_a_rank(engine::Limits limits) {
  limits.bytes = std::max(limits.bytes, std::size_t{256} << 10);
  limits.messages = UINT32_MAX;  // nothing announces them
  return limits;
}

// What is left for the messages of a plan.
engine::Limits without_greetings(const plan::Plan& plan, engine::Limits limits) {
  if (ranks_in_native_groups(plan).empty()) return limits;
  limits.bytes -= std::min(limits.bytes, room_of(0));
  limits.messages -= std::min<std::uint32_t>(limits.messages, 1);
  return limits;
}

// What the messages of a pack take of the outboxes between ranks, and what is left of them.
class Outboxes {
 public:
  Outboxes(const plan::Plan& plan, const Messages& messages, const engine::Limits& limits)
      : plan_(plan), of_pack_(plan.packs.size()) {
    std::map<Ranks, std::size_t> numbers;
    engine::Limits of_all = limits;
    of_all.bytes = std::max(limits.bytes, limits.common_bytes);
    std::vector<std::size_t> readers(messages.all.size());  // by the first of those alike, as is this
    std::vector<bool> is_added(messages.all.size());
    for (std::size_t m = 0; m < readers.size(); ++m) {
      if (!is_inside_a_rank(messages, m)) ++readers[static_cast<std::size_t>(messages.alike[m])];
    }
    for (std::size_t m = 0; m < messages.all.size(); ++m) {
      const std::int32_t from = plan.rank_of(plan.channel(messages.all[m].channel).from);
      const std::int32_t to = plan.rank_of(plan.channel(messages.all[m].channel).to);
      const auto first = static_cast<std::size_t>(messages.alike[m]);
      const bool is_common = from != to && readers[first] > 1;
      // Whether they are near is not asked, unless all are: all ranks cut alike.
      if (!is_common || limits.common_bytes == 0) {
        add(messages, m, number_of(numbers, {from, to}, from == to ? inside_a_rank(limits) : limits));
      }
      if (!is_common || is_added[first]) continue;
      is_added[first] = true;
      add(messages, m, number_of(numbers, {from, kAll}, of_all));
    }
    used_.resize(limits_.size());
    wanted_.resize(limits_.size());
  }

  void empty() {
    std::ranges::fill(used_, Used{});
    is_empty_ = true;
  }
  bool are_empty() const { return is_empty_; }

  bool has_room(const Part& part) {
    wanted_ = used_;
    const plan::Split& split = plan_.pack(part.pack).split;
    for (const Mail& mail : of_pack_[static_cast<std::size_t>(part.pack)]) {
      if (!has_side(part, mail.is_after_call)) continue;
      const std::size_t length = extent_of(part, split, mail.chunks).length;
      Used& used = wanted_[mail.pair];
      used.bytes += room_of(length * part.table.outer * mail.element_bytes);
      ++used.messages;
      const engine::Limits& limits = limits_[mail.pair];
      if (used.bytes > limits.bytes || used.messages > limits.messages) return false;
    }
    return true;
  }

  // Of those between two ranks, and the common ones.
  std::size_t fullest() const {
    std::size_t bytes = 0;
    for (std::size_t pair = 0; pair < used_.size(); ++pair) {
      if (!is_inside_[pair]) bytes = std::max(bytes, used_[pair].bytes);
    }
    return bytes;
  }

  // What has_room was asked for last.
  void take() {
    std::swap(used_, wanted_);
    is_empty_ = false;
  }

 private:
  using Ranks = std::pair<std::int32_t, std::int32_t>;
  static constexpr std::int32_t kAll = -1;  // whoever reads the common outbox

  struct Mail {
    std::size_t pair;
    plan::Chunks chunks;
    std::size_t element_bytes;
    bool is_after_call;
  };
  struct Used {
    std::size_t bytes = 0;
    std::size_t messages = 0;
  };

  bool is_inside_a_rank(const Messages& messages, std::size_t m) const {
    const plan::Channel& channel = plan_.channel(messages.all[m].channel);
    return plan_.rank_of(channel.from) == plan_.rank_of(channel.to);
  }

  std::size_t number_of(std::map<Ranks, std::size_t>& numbers, Ranks ranks, const engine::Limits& limits) {
    const auto [found, is_new] = numbers.emplace(ranks, numbers.size());
    if (is_new) {
      limits_.push_back(limits);
      is_inside_.push_back(ranks.first == ranks.second);
    }
    return found->second;
  }

  void add(const Messages& messages, std::size_t m, std::size_t pair) {
    const plan::Buffer& slot = plan_.buffer(messages.all[m].buffer);
    of_pack_[static_cast<std::size_t>(slot.pack)].push_back(
        {pair, messages.all[m].chunks, size_of(slot.element), messages.stages.is_message_after[m]});
  }

  const plan::Plan& plan_;
  std::vector<engine::Limits> limits_;  // by pair of ranks
  std::vector<bool> is_inside_;         // by pair of ranks: of a rank to itself
  std::vector<std::vector<Mail>> of_pack_;
  std::vector<Used> used_;    // by pair of ranks
  std::vector<Used> wanted_;  // if the part asked for were taken
  bool is_empty_ = true;
};

// Deals the packs out, one after the other, each in parts as large as there is room for.
class Cutter {
 public:
  Cutter(const plan::Plan& plan, const Messages& messages, const engine::Limits& limits)
      : plan_(plan), stages_(messages.stages), outboxes_(plan, messages, limits) {}

  std::vector<Round> cut(std::span<const PackTable> tables) {
    rounds_.emplace_back();
    for (std::size_t pack = 0; pack < tables.size(); ++pack)
      add(static_cast<std::int32_t>(pack), tables[pack]);
    return std::move(rounds_);
  }

 private:
  void add(std::int32_t pack, const PackTable& table) {
    if (take_if_room({pack, table})) return;
    const plan::Pack& p = plan_.pack(pack);
    if (stages_.has_call[static_cast<std::size_t>(pack)]) {
      add_around_call(pack, table);
    } else if (p.contract == Contract::kReduce) {
      add_elements(pack, table);
    } else if (p.contract == Contract::kConcatenate && plan::is_by_counts(p.split)) {
      add_rows(pack, table);
    } else {
      next_round();
      if (!take_if_room({pack, table})) refuse(pack, "its parts cannot be cut");
    }
  }

  // In a round of its own if it fits, else in parts that are brought to the call, and parts of what it gives.
  void add_around_call(std::int32_t pack, const PackTable& table) {
    next_round();
    if (take_if_room({pack, table})) return;
    if (!stages_.can_be_cut[static_cast<std::size_t>(pack)] || table.elements() == 0)
      refuse(pack, "a function needs them at once");
    for (const Stage stage : {Stage::kBeforeCall, Stage::kAfterCall}) {
      const auto run = [&](std::size_t begin, std::size_t end) {
        Part part{pack, {}, {}, stage, begin};
        append_run(table, {begin, end - begin}, part.table);
        return part;
      };
      add_runs(pack, table.elements(), run, run);
    }
  }

  void add_elements(std::int32_t pack, const PackTable& table) {
    const plan::Split& split = plan_.pack(pack).split;
    std::vector<plan::Extent> chunks;
    std::size_t longest = 0;
    for (std::uint32_t c = 0; c < plan::num_chunks(split); ++c) {
      chunks.push_back(plan::extent_of(split, table.elements(), {}, {c, 1}));
      longest = std::max(longest, chunks.back().length);
    }
    const auto lengths = [&](std::size_t begin, std::size_t end) {
      Part part{pack, {}};
      for (const plan::Extent& chunk : chunks) {
        part.chunk_lengths.push_back(std::min(end, chunk.length) - std::min(begin, chunk.length));
      }
      return part;
    };
    add_runs(pack, longest, lengths, [&](std::size_t begin, std::size_t end) {
      Part part = lengths(begin, end);
      for (std::size_t c = 0; c < chunks.size(); ++c) {
        append_run(table, {chunks[c].offset + begin, part.chunk_lengths[c]}, part.table);
      }
      return part;
    });
  }

  // Whole rows where one has room, else every row replica by replica.
  void add_rows(std::int32_t pack, const PackTable& table) {
    next_round();
    if (outboxes_.has_room(rows_of(pack, table, 0, 1))) {
      const auto rows = [&](std::size_t begin, std::size_t end) { return rows_of(pack, table, begin, end); };
      add_runs(pack, table.outer, rows, rows);
      return;
    }
    for (std::size_t row = 0; row < table.outer; ++row) {
      for (std::size_t replica = 0; replica < table.counts.size(); ++replica) {
        const auto run = [&](std::size_t begin, std::size_t end) {
          return part_of_row(pack, table, row, replica, {begin, end - begin});
        };
        add_runs(pack, table.counts[replica], run, run);
      }
    }
  }

  // `length` units in runs as long as there is room for. `outline` makes what tells how much a run takes,
  // `make` the whole part.
  template <class Outline, class Make>
  void add_runs(std::int32_t pack, std::size_t length, const Outline& outline, const Make& make) {
    std::size_t in_empty_round = 0;  // as many as it has room for; 0: not known yet
    for (std::size_t begin = 0; begin < length;) {
      if (is_in_round(pack)) next_round();
      const std::size_t left = length - begin;
      const auto has_room = [&](std::size_t count) {
        return outboxes_.has_room(outline(begin, begin + count));
      };
      std::size_t count = std::min(in_empty_round, left);
      if (!outboxes_.are_empty() || count == 0) count = most(left, has_room);
      if (outboxes_.are_empty() && count < left) in_empty_round = count;
      if (count == 0) {
        if (outboxes_.are_empty()) refuse(pack, "those of a single element are more than that");
        next_round();
        continue;
      }
      if (!take_if_room(make(begin, begin + count))) refuse(pack, "they do not shrink with its size");
      begin += count;
    }
  }

  // The largest count that has room: everything, a multiple of the grain, or, in an empty round, any number.
  template <class HasRoom>
  std::size_t most(std::size_t left, const HasRoom& has_room) const {
    if (has_room(left)) return left;
    const std::size_t grains = last_true(left / kGrain, [&](std::size_t n) { return has_room(n * kGrain); });
    if (grains > 0 || !outboxes_.are_empty()) return grains * kGrain;
    return last_true(std::min(left, kGrain), has_room);
  }

  // The last number up to `most` of which `holds` is true, which is so up to some number; 0: of none.
  template <class Predicate>
  static std::size_t last_true(std::size_t most, const Predicate& holds) {
    std::size_t low = 0;
    while (low < most) {
      const std::size_t middle = low + (most - low + 1) / 2;
      if (holds(middle)) {
        low = middle;
      } else {
        most = middle - 1;
      }
    }
    return low;
  }

  bool take_if_room(Part part) {
    if (!outboxes_.has_room(part)) return false;
    outboxes_.take();
    rounds_.back().push_back(std::move(part));
    return true;
  }

  void next_round() {
    if (outboxes_.are_empty()) return;
    outboxes_.empty();
    rounds_.emplace_back();
  }

  // Once is enough: a round runs the plan once.
  bool is_in_round(std::int32_t pack) const {
    return !rounds_.back().empty() && rounds_.back().back().pack == pack;
  }

  [[noreturn]] void refuse(std::int32_t pack, const std::string& why) const {
    throw Error(ErrorCode::kUnimplemented,
                plan_.algorithm + ": the messages of pack " + std::to_string(pack) +
                    " between two workers have no room in what is shared between them, and " + why +
                    "; choose another algorithm or fewer shards, or raise ONESUM_OUTBOX_BYTES");
  }

  const plan::Plan& plan_;
  const Stages& stages_;
  Outboxes outboxes_;
  std::vector<Round> rounds_;
};

}  // namespace

plan::Extent extent_of(const Part& part, const plan::Split& split, plan::Chunks chunks) {
  const std::vector<std::size_t>& lengths = part.chunk_lengths;
  if (lengths.empty()) return plan::extent_of(split, part.table.elements(), part.table.counts, chunks);
  const auto first = lengths.begin() + chunks.first;
  return {std::accumulate(lengths.begin(), first, std::size_t{0}),
          std::accumulate(first, first + chunks.count, std::size_t{0})};
}

std::size_t room_of(std::size_t payload_bytes) noexcept {
  const std::size_t lines = (payload_bytes + engine::kMessageAlignment - 1) / engine::kMessageAlignment;
  return engine::kMessageHeader + lines * engine::kMessageAlignment;
}

std::vector<Round> rounds_of(const plan::Plan& plan, const Messages& messages,
                             std::span<const PackTable> tables, const engine::Limits& limits) {
  return Cutter(plan, messages, without_greetings(plan, limits)).cut(tables);
}

std::size_t fullest_outbox(const plan::Plan& plan, const Messages& messages, std::span<const Round> rounds,
                           const engine::Limits& limits) {
  Outboxes outboxes(plan, messages, limits);
  std::size_t bytes = 0;
  for (const Round& round : rounds) {
    outboxes.empty();
    for (const Part& part : round) {
      outboxes.has_room(part);
      outboxes.take();
    }
    bytes = std::max(bytes, outboxes.fullest());
  }
  return bytes;
}

}  // namespace onesum::exec
