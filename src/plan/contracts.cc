#include "plan/contracts.h"

#include <string_view>
#include <unordered_map>

#include <fmt/format.h>

#include "plan/refuse.h"

namespace onesum::plan {

namespace {

bool is_replica(const Buffer& buffer) { return buffer.role == Role::kInput || buffer.role == Role::kInOut; }
bool is_result(const Buffer& buffer) { return buffer.role == Role::kOutput || buffer.role == Role::kInOut; }

// The destinations of packs on each device: which one a kInOut replaces.
class DestinationsOnDevices {
 public:
  explicit DestinationsOnDevices(const Plan& plan) : plan_(plan), of_packs_(plan.packs.size()) {}

  struct Found {
    std::int32_t first = -1;
    std::int32_t count = 0;
  };

  Found at(std::int32_t pack, std::int32_t device) {
    std::unordered_map<std::int32_t, Found>& found = of_packs_[static_cast<std::size_t>(pack)];
    if (found.empty()) {
      std::int32_t number = 0;
      for (const std::int32_t on : plan_.pack(pack).destinations) {
        Found& entry = found[on];
        if (entry.count++ == 0) entry.first = number;
        ++number;
      }
    }
    const auto entry = found.find(device);
    return entry == found.end() ? Found{} : entry->second;
  }

 private:
  const Plan& plan_;
  std::vector<std::unordered_map<std::int32_t, Found>> of_packs_;
};

// Shares out the chunks of a pack; `who` says of what ("replica", "destination").
class Shares {
 public:
  Shares(const Plan& plan, std::int32_t pack, std::string_view who)
      : pack_(pack), who_(who), owners_(num_chunks(plan.pack(pack).split), -1) {}

  void give(std::int32_t owner, Chunks chunks) {
    for (std::uint32_t chunk = chunks.first; chunk < chunks.first + chunks.count; ++chunk) {
      std::int32_t& of_chunk = owners_[chunk];
      if (of_chunk >= 0) {
        refuse(fmt::format("pack {}: chunk {} belongs to {} {} and to {} {}, expected one of them", pack_,
                           chunk, who_, of_chunk, who_, owner));
      }
      of_chunk = owner;
    }
  }

  std::vector<std::int32_t> take() {
    for (std::size_t chunk = 0; chunk < owners_.size(); ++chunk) {
      if (owners_[chunk] < 0) refuse(fmt::format("pack {}: chunk {} belongs to no {}", pack_, chunk, who_));
    }
    return std::move(owners_);
  }

 private:
  std::int32_t pack_;
  std::string_view who_;
  std::vector<std::int32_t> owners_;
};

}  // namespace

BuffersOfPacks replica_buffers(const Plan& plan) {
  BuffersOfPacks replicas(plan.packs.size());
  for (std::size_t i = 0; i < replicas.size(); ++i) replicas[i].resize(plan.packs[i].replicas.size(), -1);
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(plan.buffers.size()); ++i) {
    const Buffer& buffer = plan.buffer(i);
    if (!is_replica(buffer)) continue;
    std::int32_t& other =
        replicas[static_cast<std::size_t>(buffer.pack)][static_cast<std::size_t>(buffer.index)];
    if (other >= 0) {
      refuse(fmt::format("b{} and b{} are both replica {} of pack {}", other, i, buffer.index, buffer.pack));
    }
    other = i;
  }
  return replicas;
}

BuffersOfPacks result_buffers(const Plan& plan) {
  BuffersOfPacks results(plan.packs.size());
  for (std::size_t i = 0; i < results.size(); ++i) results[i].resize(plan.packs[i].destinations.size(), -1);
  DestinationsOnDevices on_devices(plan);
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(plan.buffers.size()); ++i) {
    const Buffer& buffer = plan.buffer(i);
    if (!is_result(buffer)) continue;
    std::int32_t destination = buffer.index;
    if (buffer.role == Role::kInOut) {
      const DestinationsOnDevices::Found found = on_devices.at(buffer.pack, buffer.device);
      if (found.count != 1) {
        refuse(fmt::format("pack {}: b{} replaces {} destinations on device {}, expected 1", buffer.pack, i,
                           found.count, buffer.device));
      }
      destination = found.first;
    }
    std::int32_t& other =
        results[static_cast<std::size_t>(buffer.pack)][static_cast<std::size_t>(destination)];
    if (other >= 0) {
      refuse(fmt::format("pack {}: b{} and b{} are both its destination {}", buffer.pack, other, i,
                         destination));
    }
    other = i;
  }
  for (std::size_t pack = 0; pack < results.size(); ++pack) {
    for (std::size_t d = 0; d < results[pack].size(); ++d) {
      if (results[pack][d] < 0) refuse(fmt::format("pack {}: no buffer is its destination {}", pack, d));
    }
  }
  return results;
}

Chunks brought_by(const Plan& plan, const Buffer& replica) {
  const Pack& pack = plan.pack(replica.pack);
  const bool own_chunk = pack.contract == Contract::kConcatenate && is_by_counts(pack.split);
  return own_chunk ? Chunks{static_cast<std::uint32_t>(replica.index), 1} : replica.window;
}

std::vector<std::int32_t> bringers(const Plan& plan, const BuffersOfPacks& replicas, std::int32_t pack) {
  Shares shares(plan, pack, "replica");
  const std::vector<std::int32_t>& buffers = replicas[static_cast<std::size_t>(pack)];
  for (std::size_t r = 0; r < buffers.size(); ++r) {
    const auto replica = static_cast<std::int32_t>(r);
    if (is_by_counts(plan.pack(pack).split)) {
      shares.give(replica, {static_cast<std::uint32_t>(r), 1});
    } else if (buffers[r] >= 0) {
      shares.give(replica, plan.buffer(buffers[r]).window);
    }
  }
  return shares.take();
}

std::vector<std::int32_t> holders(const Plan& plan, const BuffersOfPacks& results, std::int32_t pack) {
  Shares shares(plan, pack, "destination");
  const std::vector<std::int32_t>& buffers = results[static_cast<std::size_t>(pack)];
  for (std::size_t d = 0; d < buffers.size(); ++d) {
    shares.give(static_cast<std::int32_t>(d), plan.buffer(buffers[d]).window);
  }
  return shares.take();
}

}  // namespace onesum::plan
