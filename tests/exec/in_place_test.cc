// What ranks send each other does not depend on which results are in place: a rank knows that of its own
// results alone, and both ends of a channel must number messages alike.
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "collective/all_reduce.h"
#include "exec/messages.h"

namespace onesum::exec {
namespace {

using collective::Algorithm;

collective::Topology topology_of(std::int32_t workers, std::int32_t devices) {
  collective::Topology topology;
  for (std::int32_t d = 0; d < workers * devices; ++d) {
    topology.device_rank.push_back(d / devices);
    if (d % devices == 0) topology.hosts.push_back(d);
  }
  for (std::int32_t worker = 0; worker < workers; ++worker) topology.machines.push_back(worker / 2);
  return topology;
}

// In place on rank `in_place` alone (-1: nowhere).
collective::Task task_of(const collective::Topology& topology, std::int32_t in_place) {
  collective::Task task;
  for (std::int32_t d = 0; d < static_cast<std::int32_t>(topology.device_rank.size()); ++d) {
    task.replicas.push_back({d, Element::kFloat32});
    task.destinations.push_back({d, topology.rank_of(d) == in_place ? d : -1});
  }
  return task;
}

std::string words_of(const plan::Plan& plan) {
  std::string text;
  for (const Message& message : messages_of(plan).all) {
    const plan::Channel& channel = plan.channel(message.channel);
    text += std::to_string(channel.from) + ">" + std::to_string(channel.to) + "#" +
            std::to_string(channel.number) + ":" + std::to_string(message.chunks.first) + "+" +
            std::to_string(message.chunks.count) +
            std::string(to_string(plan.buffer(message.buffer).element)) + " ";
  }
  return text;
}

TEST(InPlace, ChangesNoMessage) {
  constexpr Algorithm kAll[] = {Algorithm::kNccl,
                                Algorithm::kRing,
                                Algorithm::kHalvingDoubling,
                                Algorithm::kShuffleHosts,
                                Algorithm::kShuffleDevices,
                                Algorithm::kDirect,
                                Algorithm::kHierarchicalCopy,
                                Algorithm::kExchange,
                                Algorithm::kMachines,
                                Algorithm::kDoubling,
                                Algorithm::kPool};
  std::vector<std::optional<Algorithm>> insides{std::nullopt};
  for (const Algorithm inside : kAll) insides.emplace_back(inside);
  for (const std::int32_t workers : {2, 3, 4, 5}) {
    for (const std::int32_t devices : {1, 2, 3}) {
      const collective::Topology topology = topology_of(workers, devices);
      for (const std::optional<Algorithm>& inside : insides) {
        for (const Algorithm across : kAll) {
          const collective::Scheme scheme{inside, across, 2};
          SCOPED_TRACE(to_string(scheme) + " on " + std::to_string(workers) + " x " +
                       std::to_string(devices));
          const std::string expected = words_of(all_reduce(topology, task_of(topology, -1), scheme));
          for (const std::int32_t rank : {0, workers - 1}) {
            ASSERT_EQ(words_of(all_reduce(topology, task_of(topology, rank), scheme)), expected);
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace onesum::exec
