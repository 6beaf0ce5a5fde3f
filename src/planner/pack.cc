#include "planner/pack.h"

#include <algorithm>
#include <numeric>

namespace onesum::planner {
namespace {

plan::PackTable table_of_concatenation(const Stream& stream, plan::PackMember member) {
  plan::PackTable table;
  table.outer = stream.outer;
  for (const std::size_t elements : stream.replica_elements) {
    table.counts.push_back(stream.outer == 0 ? 0 : elements / stream.outer);
  }
  member.elements = std::accumulate(table.counts.begin(), table.counts.end(), std::size_t{0});
  table.members.push_back(member);
  return table;
}

}  // namespace

std::vector<PackOfStreams> pack_streams(const std::vector<Stream>& streams, bool one_stream_each) {
  std::vector<PackOfStreams> packs;
  std::size_t slot = 0;
  for (std::size_t s = 0; s < streams.size(); ++s) {
    const Stream& stream = streams[s];
    plan::PackMember member;
    member.elements = stream.replica_elements.front();
    member.first_input = static_cast<std::uint32_t>(slot);
    member.first_output = static_cast<std::uint32_t>(slot + stream.task.replicas.size());
    slot += stream.task.replicas.size() + stream.task.destinations.size();

    if (stream.task.contract == plan::Contract::kConcatenate) {
      packs.push_back({stream.task, table_of_concatenation(stream, member), {s}});
      continue;
    }
    auto pack = packs.end();
    if (!one_stream_each) {
      pack = std::find_if(packs.begin(), packs.end(),
                          [&](const PackOfStreams& p) { return p.task == stream.task; });
    }
    if (pack == packs.end()) {
      packs.push_back({stream.task, {}, {}});
      pack = packs.end() - 1;
    }
    pack->table.members.push_back(member);
    pack->streams.push_back(s);
  }
  return packs;
}

std::size_t count_slots(const std::vector<Stream>& streams) {
  std::size_t slots = 0;
  for (const Stream& stream : streams) slots += stream.task.replicas.size() + stream.task.destinations.size();
  return slots;
}

}  // namespace onesum::planner
