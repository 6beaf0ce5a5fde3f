// Slurm's short form of many names.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace onesum::cluster {

// "a[01-03,7],b-[1-2]-x[5-6]" names a01, a02, a03, a7, b-1-x5, b-1-x6, b-2-x5, b-2-x6: zeros in front are
// kept, of several brackets the last counts fastest. Throws invalid_argument saying what is wrong and where,
// also for more than `most` names.
std::vector<std::string> expand_node_list(std::string_view text, std::size_t most);

// "2(x3),1": two on each of the first three nodes, one on the fourth. How many are on that node; throws
// invalid_argument for other text or if there are not so many nodes.
int tasks_on_node(std::string_view text, std::size_t node);

}  // namespace onesum::cluster
