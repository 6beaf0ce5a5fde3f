#include "planner/pack.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace onesum::planner {
namespace {

using plan::PackMember;

plan::PackTable table_of_concatenation(const Stream& stream, PackMember member) {
  plan::PackTable table;
  table.outer = stream.outer;
  for (const std::size_t elements : stream.replica_elements) {
    table.counts.push_back(stream.outer == 0 ? 0 : elements / stream.outer);
  }
  member.elements = std::accumulate(table.counts.begin(), table.counts.end(), std::size_t{0});
  table.members.push_back(member);
  return table;
}

std::size_t bytes_of(const Stream& stream) {
  return stream.replica_elements.front() * size_of(stream.task.replicas.front().element);
}

bool is_all_reduce(const collective::Task& task) {
  if (task.replicas.size() != task.destinations.size()) return false;
  return std::ranges::all_of(task.destinations, [&](const collective::Target& target) {
    return std::ranges::find(task.replicas, target.device, &collective::Source::device) !=
           task.replicas.end();
  });
}

bool are_alike_elsewhere(const collective::Task& a, const collective::Task& b) {
  const auto elsewhere = [](collective::Task task) {
    for (collective::Target& target : task.destinations) target.in_place_of = -1;
    return task;
  };
  return a.destinations.size() == b.destinations.size() && elsewhere(a) == elsewhere(b);
}

bool is_empty(const Stream& stream) {
  return std::ranges::all_of(stream.replica_elements, [](std::size_t elements) { return elements == 0; });
}

void copy_replaced(Stream& stream) {
  for (collective::Target& target : stream.task.destinations) {
    if (target.in_place_of >= 0)
      stream.copied_replicas.push_back(static_cast<std::uint32_t>(target.in_place_of));
    target.in_place_of = -1;
  }
}

// Streams that may share packs, in their order.
struct Group {
  Route route;
  std::vector<std::size_t> streams;
};

class Packing {
 public:
  Packing(const std::vector<Stream>& streams, CallKind kind, const Policy& policy, std::size_t bytes_per_pack)
      : streams_(streams), kind_(kind), policy_(policy), bytes_per_pack_(bytes_per_pack) {
    std::size_t slot = 0;
    for (const Stream& stream : streams) {
      PackMember member;
      member.elements = stream.replica_elements.front();
      member.first_input = static_cast<std::uint32_t>(slot);
      member.first_output = static_cast<std::uint32_t>(slot + stream.task.replicas.size());
      member.input_offset = stream.input_offset;
      member.output_offset = stream.output_offset;
      slot += stream.task.replicas.size() + stream.task.destinations.size();
      members_.push_back(member);
    }
  }

  std::vector<PackOfStreams> pack() {
    for (const Group& group : groups()) {
      if (group.route.way == Way::kConcatenate) {
        const std::size_t s = group.streams.front();
        packs_.push_back(
            {group.route, 0, streams_[s].task, table_of_concatenation(streams_[s], members_[s]), {s}});
      } else if (group.route.way == Way::kOneDevice) {
        add_each_or_all(group, !uses_function(kind_, policy_));
      } else {
        pack_all_reduce(group);
      }
    }
    number_packs();
    return std::move(packs_);
  }

 private:
  std::vector<Group> groups() const {
    std::vector<Group> groups;
    for (std::size_t s = 0; s < streams_.size(); ++s) {
      const Route route = route_of(streams_[s], kind_, policy_);
      const auto is_alike = [&](const Group& group) {
        return group.route == route && streams_[group.streams.front()].task == streams_[s].task;
      };
      auto group = route.way == Way::kConcatenate ? groups.end() : std::ranges::find_if(groups, is_alike);
      if (group == groups.end()) {
        groups.push_back({route, {}});
        group = groups.end() - 1;
      }
      group->streams.push_back(s);
    }
    return groups;
  }

  void pack_all_reduce(const Group& group) {
    if (policy_.num_packs > 0) {
      cut_evenly(group, static_cast<std::size_t>(policy_.num_packs));
    } else if (policy_.small_tensor_max_bytes > 0 && policy_.small_tensors_max_group > 0) {
      group_small(group);
    } else if (bytes_per_pack_ > 0) {
      fill_up(group);
    } else {
      add_each_or_all(group, policy_.specs[group.route.spec].alg == "auto");
    }
  }

  void begin_pack(const Group& group) {
    packs_.push_back({group.route, 0, streams_[group.streams.front()].task, {}, {}});
  }

  void add(std::size_t stream, const PackMember& member) {
    packs_.back().table.members.push_back(member);
    packs_.back().streams.push_back(stream);
  }

  void add_each_or_all(const Group& group, bool all) {
    for (std::size_t i = 0; i < group.streams.size(); ++i) {
      if (i == 0 || !all) begin_pack(group);
      add(group.streams[i], members_[group.streams[i]]);
    }
  }

  // All elements together in `parts` equal parts, of which the last takes the remainder, whatever tensors
  // they are of. Tensors without elements go where they stand.
  void cut_evenly(const Group& group, std::size_t parts) {
    std::size_t total = 0;
    for (const std::size_t s : group.streams) total += members_[s].elements;
    const std::size_t each = total / parts;
    std::size_t part = each == 0 ? parts - 1 : 0;
    std::size_t room = part + 1 == parts ? total : each;
    begin_pack(group);
    for (const std::size_t s : group.streams) {
      PackMember rest = members_[s];
      while (rest.elements > room) {
        PackMember head = rest;
        head.elements = room;
        if (room > 0) add(s, head);
        rest.input_offset += room;
        rest.output_offset += room;
        rest.elements -= room;
        ++part;
        room = part + 1 == parts ? total - each * (parts - 1) : each;
        begin_pack(group);
      }
      add(s, rest);
      room -= rest.elements;
    }
  }

  // Runs of neighbours that are small, at most so many to a pack.
  void group_small(const Group& group) {
    const auto most = static_cast<std::size_t>(policy_.small_tensors_max_group);
    std::size_t last = streams_.size();  // the stream before this one if it was small
    for (const std::size_t s : group.streams) {
      const bool is_small = bytes_of(streams_[s]) <= policy_.small_tensor_max_bytes;
      const bool continues =
          is_small && last < s && is_next_of_kind(last, s) && packs_.back().streams.size() < most;
      if (!continues) begin_pack(group);
      add(s, members_[s]);
      last = is_small ? s : streams_.size();
    }
  }

  // Whether no all-reduced tensor lies between two streams.
  bool is_next_of_kind(std::size_t before, std::size_t after) const {
    for (std::size_t s = before + 1; s < after; ++s) {
      if (route_of(streams_[s], kind_, policy_) == route_of(streams_[after], kind_, policy_)) return false;
    }
    return true;
  }

  // A pack is closed when it has more than the bytes asked for.
  void fill_up(const Group& group) {
    std::size_t filled = 0;
    for (const std::size_t s : group.streams) {
      if (s == group.streams.front() || filled > bytes_per_pack_) {
        begin_pack(group);
        filled = 0;
      }
      add(s, members_[s]);
      filled += bytes_of(streams_[s]);
    }
  }

  void number_packs() {
    std::vector<std::pair<Route, std::size_t>> counts;
    for (PackOfStreams& pack : packs_) {
      auto count = std::ranges::find(counts, pack.route, &std::pair<Route, std::size_t>::first);
      if (count == counts.end()) count = counts.insert(counts.end(), {pack.route, 0});
      pack.number = count->second++;
    }
  }

  const std::vector<Stream>& streams_;
  CallKind kind_;
  const Policy& policy_;
  std::size_t bytes_per_pack_;
  std::vector<PackMember> members_;  // of each stream, whole
  std::vector<PackOfStreams> packs_;
};

}  // namespace

bool uses_function(CallKind kind, const Policy& policy) noexcept {
  return policy.has_accumulation_fn && (kind == CallKind::kReduce || kind == CallKind::kBatchReduce);
}

Route route_of(const Stream& stream, CallKind kind, const Policy& policy) {
  if (stream.task.contract == plan::Contract::kConcatenate) return {Way::kConcatenate, 0};
  const bool reduces = kind == CallKind::kReduce || kind == CallKind::kBatchReduce;
  if (!reduces || policy.specs.empty() || !is_all_reduce(stream.task)) return {Way::kOneDevice, 0};
  const std::size_t bytes = bytes_of(stream);
  const auto spec = std::ranges::find_if(policy.specs, [&](const AllReduceSpec& candidate) {
    return candidate.limit < 0 || bytes <= static_cast<std::size_t>(candidate.limit);
  });
  return {Way::kAllReduce, static_cast<std::size_t>(spec - policy.specs.begin())};
}

void settle_memory(std::vector<Stream>& streams) {
  const auto lies_as_the_first = [&](const Stream& stream) {
    constexpr auto kWhere = &collective::Target::in_place_of;
    return std::ranges::equal(stream.task.destinations, streams.front().task.destinations, {}, kWhere,
                              kWhere);
  };
  if (std::ranges::all_of(streams, lies_as_the_first)) return;
  std::vector<std::vector<Stream*>> kinds;
  for (Stream& stream : streams) {
    const auto is_its = [&](const auto& kind) {
      return are_alike_elsewhere(kind.front()->task, stream.task);
    };
    const auto kind = std::ranges::find_if(kinds, is_its);
    if (kind == kinds.end()) {
      kinds.push_back({&stream});
    } else {
      kind->push_back(&stream);
    }
  }
  for (const std::vector<Stream*>& kind : kinds) {
    const auto model = std::ranges::find_if_not(kind, [](const Stream* stream) { return is_empty(*stream); });
    const std::vector<collective::Target> targets =
        (model == kind.end() ? kind.front() : *model)->task.destinations;
    const auto fits = [&](const Stream* stream) {
      return is_empty(*stream) || stream->task.destinations == targets;
    };
    const bool all_fit = std::ranges::all_of(kind, fits);
    for (Stream* const stream : kind) {
      if (!all_fit) {
        copy_replaced(*stream);
      } else if (is_empty(*stream)) {
        stream->task.destinations = targets;
      }
    }
  }
}

std::vector<PackOfStreams> pack_streams(const std::vector<Stream>& streams, CallKind kind,
                                        const Policy& policy, std::size_t bytes_per_pack) {
  return Packing(streams, kind, policy, bytes_per_pack).pack();
}

std::size_t count_slots(const std::vector<Stream>& streams) {
  std::size_t slots = 0;
  for (const Stream& stream : streams) slots += stream.task.replicas.size() + stream.task.destinations.size();
  return slots;
}

std::size_t count_tensors(const std::vector<Stream>& streams) {
  std::size_t tensors = 0;
  for (std::size_t s = 0; s < streams.size(); ++s) {
    const bool is_next_part =
        !streams[s].replica_numbers.empty() && s > 0 && streams[s - 1].pair == streams[s].pair;
    if (!is_next_part) ++tensors;
  }
  return tensors;
}

}  // namespace onesum::planner
