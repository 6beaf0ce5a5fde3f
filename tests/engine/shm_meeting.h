// Ranks that meet over shared memory, for tests and benchmarks.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include <unistd.h>

#include "engine/shm/shm_transport.h"
#include "engine/transport_ranks.h"

namespace onesum::engine::testing {

enum class PeersMap : std::uint8_t {
  kDescriptors,  // as processes do
  kNothing,      // all ranks use the owner's mapping, so that ThreadSanitizer sees who shares what
};

class ShmMeeting final : public Meeting {
 public:
  ShmMeeting(int size, const Limits& limits, PeersMap how = PeersMap::kDescriptors) {
    const shm::Layout layout(size, limits);
    for (int rank = 0; rank < size; ++rank) {
      segments_.emplace_back(rank, layout);
      wakes_.push_back(shm::make_wake_descriptor());
    }
    for (int rank = 0; rank < size; ++rank) {
      std::vector<shm::Peer>& peers = peers_.emplace_back();
      for (std::size_t peer = 0; peer < segments_.size(); ++peer) {
        const shm::Segment& segment = segments_[peer];
        if (segment.rank() == rank) continue;
        peers.push_back({how == PeersMap::kNothing
                             ? shm::PeerSegment(segment)
                             : shm::PeerSegment(segment.descriptor(), segment.rank(), layout),
                         Fd(dup(wakes_[peer].get()))});
      }
    }
  }

  std::unique_ptr<Transport> join(int rank) override {
    const auto r = static_cast<std::size_t>(rank);
    return std::make_unique<shm::ShmTransport>(std::move(segments_[r]), std::move(wakes_[r]),
                                               std::move(peers_[r]));
  }

 private:
  std::vector<shm::Segment> segments_;
  std::vector<Fd> wakes_;
  std::vector<std::vector<shm::Peer>> peers_;
};

inline TransportUnderTest over_shm(RanksAre ranks_are, PeersMap how = PeersMap::kDescriptors) {
  const std::string name = ranks_are == RanksAre::kProcesses ? "processes"
                           : how == PeersMap::kDescriptors   ? "threads"
                                                             : "threads_in_one_mapping";
  return {.name = name, .ranks_are = ranks_are, .meet = [how](int size, const Limits& limits) {
            return std::make_unique<ShmMeeting>(size, limits, how);
          }};
}

}  // namespace onesum::engine::testing
