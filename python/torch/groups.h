// The clusters of process groups.
//
// A process joins its cluster once, with the first process group that has more than one member, and keeps it
// until it leaves at its end: so process groups can be destroyed and made again. Each group is a cluster of
// its own, made by its members alone.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <onesum/cluster.h>

namespace onesum::bridge {

struct Membership {
  int rank = 0;  // of this process in the group
  int size = 1;
  std::vector<int> ranks{};  // of the members in the world; empty: all of them, and the group is the world
  std::string name{};
  std::chrono::milliseconds timeout{0};
};

// The group's cluster, when all its members have come. The environment says who this process is among all.
std::shared_ptr<Cluster> cluster_of(const Membership& membership);

// Whether this process has joined its cluster.
bool has_joined();

// Tells the others that this process has left. Calls of any group fail from then on, also those under way.
void leave() noexcept;

}  // namespace onesum::bridge
