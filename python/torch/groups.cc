#include "groups.h"

#include <mutex>
#include <numeric>
#include <optional>
#include <utility>

#include <c10/util/Exception.h>

namespace onesum::bridge {
namespace {

struct World {
  std::mutex mutex;
  std::optional<Cluster> cluster;
  std::vector<std::weak_ptr<Cluster>> groups;
  bool is_over = false;
};

// Never destroyed: threads of the library may outlive the static objects of this one.
World& world() {
  static auto* const its = new World;
  return *its;
}

Cluster joined_world() {
  World& its = world();
  const std::lock_guard lock(its.mutex);
  TORCH_CHECK(!its.is_over, "onesum: this process has left its cluster");
  if (!its.cluster) its.cluster = Cluster::from_environment();
  return *its.cluster;
}

std::shared_ptr<Cluster> enrolled(Cluster cluster) {
  auto group = std::make_shared<Cluster>(std::move(cluster));
  World& its = world();
  const std::lock_guard lock(its.mutex);
  std::erase_if(its.groups, [](const std::weak_ptr<Cluster>& other) { return other.expired(); });
  its.groups.push_back(group);
  return group;
}

}  // namespace

std::shared_ptr<Cluster> cluster_of(const Membership& membership) {
  if (membership.size == 1) return std::make_shared<Cluster>(Cluster::local());
  Cluster all = joined_world();
  std::vector<int> ranks = membership.ranks;
  if (ranks.empty()) {
    TORCH_CHECK_VALUE(all.size() == membership.size && all.rank() == membership.rank,
                      "onesum: init_process_group says that this is rank ", membership.rank, " of ",
                      membership.size, ", but in the cluster that this process has joined it is rank ",
                      all.rank(), " of ", all.size(), "; a process joins once");
    ranks.resize(static_cast<std::size_t>(membership.size));
    std::iota(ranks.begin(), ranks.end(), 0);
  }
  return enrolled(all.group(ranks, "torch " + membership.name, membership.timeout));
}

bool has_joined() {
  World& its = world();
  const std::lock_guard lock(its.mutex);
  return its.cluster.has_value();
}

void leave() noexcept {
  World& its = world();
  const std::lock_guard lock(its.mutex);
  its.is_over = true;
  for (const std::weak_ptr<Cluster>& weak : its.groups) {
    if (const std::shared_ptr<Cluster> group = weak.lock()) group->close();
  }
  if (its.cluster) its.cluster->close();
}

}  // namespace onesum::bridge
