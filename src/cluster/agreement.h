// What worker 0 says of the others: how one differs, who is missing. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "cluster/messages.h"

namespace onesum::cluster {

// How `other` differs from worker 0's hello in what must be the same, and whether its rank can be; the first
// difference.
std::optional<std::string> difference(const Hello& own, const Hello& other);

// "1, 3, 5-9"; ascending ranks are expected.
std::string listed_ranks(const std::vector<int>& ranks);

// "5 s", "0.25 s".
std::string in_seconds(Clock::duration duration);

}  // namespace onesum::cluster
