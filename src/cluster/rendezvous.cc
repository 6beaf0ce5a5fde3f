#include "cluster/rendezvous.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <onesum/error.h>

#include "base/config.h"
#include "cluster/hello.h"
#include "cluster/join.h"
#include "cluster/lead.h"

namespace onesum::cluster {
namespace {

constexpr Clock::duration kLongest = std::chrono::hours(24 * 365);

[[noreturn]] void refuse(const std::string& text) { throw Error(ErrorCode::kInvalidArgument, text); }

void check(const Meeting& meeting) {
  if (meeting.size < 1 || meeting.size > kMostWorkers) {
    refuse(fmt::format("a job of {} workers, expected 1 to {}", meeting.size, kMostWorkers));
  }
  if (meeting.rank < 0 || meeting.rank >= meeting.size) {
    refuse(fmt::format("rank {} of a job of {} workers, expected 0 to {}", meeting.rank, meeting.size,
                       meeting.size - 1));
  }
  if (meeting.offer.size() > kMostOfferBytes) {
    refuse(fmt::format("rank {} offers {} bytes, expected at most {}", meeting.rank, meeting.offer.size(),
                       kMostOfferBytes));
  }
}

}  // namespace

Met meet(Meeting meeting) {
  check(meeting);
  if (meeting.size == 1) {
    Met alone;
    alone.offers.push_back(std::move(meeting.offer));
    alone.connections.emplace_back();
    return alone;
  }
  // So that whatever is added to it is still a time.
  meeting.deadline = std::min(meeting.deadline, now() + kLongest);
  const bool looks_it_up = meeting.rank != 0 && meeting.lookup;
  if (!looks_it_up) check_secret({meeting.place}, meeting.secret);
  return meeting.rank == 0 ? lead(meeting) : join(meeting);
}

}  // namespace onesum::cluster
