#include "same_bits.h"

#include <vector>

#include <gtest/gtest.h>

#include "calls.h"
#include "workers.h"

namespace onesum::testing {
namespace {

// By rank; in a cluster of processes only this one's own.
std::vector<std::string> results_of_all_specs(const Cluster& cluster, int own) {
  std::vector<std::string> all(static_cast<std::size_t>(cluster.size()));
  for (const std::string& spec : all_specs()) {
    const std::vector<std::string> texts = results_of(cluster, own, spec);
    for (std::size_t rank = 0; rank < all.size(); ++rank) all[rank].append(texts[rank]).append("\n");
  }
  return all;
}

}  // namespace

void expect_same_bits_as_embedded(int size, const std::string& transport) {
  const auto work = [](int rank) {
    return results_of_all_specs(Cluster::from_environment(), rank)[static_cast<std::size_t>(rank)];
  };
  std::string found;
  for (const WorkerEnd& end : run_workers(size, work, {{"ONESUM_TRANSPORT", transport}})) found += end.text;
  const std::string expected = run_alone([&] {
    std::string all;
    for (const std::string& text : results_of_all_specs(Cluster::embedded(worker_names(size), kDevices), -1))
      all += text;
    return all;
  });
  EXPECT_EQ(found, expected);
}

}  // namespace onesum::testing
