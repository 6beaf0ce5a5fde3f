// Ranks of one process for tests of collectives: a device, a stream, memory and a communicator each.
#pragma once

#include <memory>
#include <vector>

#include "emulated_gpu_self/child.h"

namespace onesum::testing {

struct Rank {
  explicit Rank(int rank_device, std::size_t count)
      : device(rank_device), stream(rank_device), memory(count, rank_device) {}
  int device;
  StreamOwner stream;
  DeviceOwner<float> memory;
  ncclComm_t communicator = nullptr;

  void put(const std::vector<float>& values) const {
    check(cudaMemcpy(memory.get, values.data(), values.size() * sizeof(float), cudaMemcpyHostToDevice));
  }
  std::vector<float> get(std::size_t count) const {
    std::vector<float> values(count);
    check(cudaStreamSynchronize(stream.get));
    check(cudaMemcpy(values.data(), memory.get, count * sizeof(float), cudaMemcpyDeviceToHost));
    return values;
  }
};

using Ranks = std::vector<std::unique_ptr<Rank>>;

// Without communicators.
inline Ranks make_ranks(int ranks, std::size_t count) {
  Ranks result;
  for (int rank = 0; rank < ranks; ++rank) result.push_back(std::make_unique<Rank>(rank, count));
  return result;
}

inline void init(Ranks& ranks) {
  ncclUniqueId id;
  check(ncclGetUniqueId(&id));
  check(ncclGroupStart());
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    check(cudaSetDevice(ranks[rank]->device));
    check(ncclCommInitRank(&ranks[rank]->communicator, static_cast<int>(ranks.size()), id,
                           static_cast<int>(rank)));
  }
  check(ncclGroupEnd());
  check(cudaSetDevice(0));
}

inline void destroy(const Ranks& ranks) {
  for (const auto& rank : ranks) check(ncclCommDestroy(rank->communicator));
}

// In place, of all ranks in a group.
inline ncclResult_t all_reduce(const Ranks& ranks, std::size_t count) {
  check(ncclGroupStart());
  for (const auto& rank : ranks) {
    check(ncclAllReduce(rank->memory.get, rank->memory.get, count, ncclFloat32, ncclSum, rank->communicator,
                        rank->stream.get));
  }
  return ncclGroupEnd();
}

}  // namespace onesum::testing
