#include "api/community.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <onesum/error.h>

#include "api/engines.h"
#include "api/machine_numbers.h"
#include "base/bytes.h"
#include "base/hash.h"
#include "base/log.h"

namespace onesum::api {
namespace {

constexpr cluster::GroupId kFirstGroup = 1;
// For those who are left to connect, whatever was left of the time to agree.
constexpr std::chrono::seconds kLeastSetUpTime{10};

cluster::Group group_of(const Community& community, cluster::GroupId id, std::vector<int> seats) {
  cluster::Group group{id, std::move(seats), {}};
  for (const int seat : group.seats) {
    group.names.push_back(community.workers[static_cast<std::size_t>(seat)].to_string());
  }
  return group;
}

// Whether more workers of this machine may wait at a time than they have cores together.
bool is_crowded(const Community& community, const std::vector<int>& seats, const std::vector<bool>& is_near) {
  std::set<std::uint32_t> cores;
  std::size_t workers = 0;
  for (std::size_t rank = 0; rank < seats.size(); ++rank) {
    if (!is_near[rank]) continue;
    const std::vector<std::uint32_t>& own = community.cores[static_cast<std::size_t>(seats[rank])];
    cores.insert(own.begin(), own.end());
    ++workers;
  }
  return workers > cores.size();
}

// The epoch has begun; makes it one that calls can be made in. `life`: 0 for the first group, more for what
// is left of it; none for others.
std::unique_ptr<Session> equip(const std::shared_ptr<const Community>& community,
                               std::unique_ptr<cluster::Epoch>& epoch, std::optional<std::uint32_t> life,
                               Clock::time_point deadline) {
  TransportRequest request;
  request.choice = community->transport;
  request.checksums = community->checksums;
  request.outbox_bytes = community->outbox_bytes;
  if (life) request.faults = community->faults;
  request.life = life.value_or(0);
  request.deadline = deadline;
  const std::string& here = community->machines[static_cast<std::size_t>(community->links->seat())];
  SessionOptions options;
  options.community = community;
  options.life = life;
  std::vector<std::string> machines;
  for (const int seat : epoch->group().seats) {
    const std::string& there = community->machines[static_cast<std::size_t>(seat)];
    request.is_near.push_back(!here.empty() && there == here);
    machines.push_back(there);
    options.workers.push_back(community->workers[static_cast<std::size_t>(seat)]);
  }
  options.machines = machine_numbers(machines);
  request.is_spread = std::ranges::max(options.machines) > 0;
  request.is_crowded = is_crowded(*community, epoch->group().seats, request.is_near);
  options.is_crowded = request.is_crowded;
  MadeTransport made = make_transport(request, *epoch);
  options.recorder = cluster::FlightRecorder(made.notes);
  epoch->set_wake(made.wake);
  epoch->set_records(std::move(made.notes_of));
  return std::make_unique<Session>(std::move(made.transport), std::move(epoch), std::move(options));
}

// Whoever the group is made by agrees on its id without another word.
cluster::GroupId id_after(const cluster::Epoch& parent, std::uint64_t call, std::span<const int> ranks) {
  Hasher hasher;
  hasher.add(parent.group().id);
  hasher.add(call);
  for (const int rank : ranks) hasher.add(static_cast<std::uint64_t>(rank));
  return hasher.finish().low;
}

// Of some of a session's workers.
std::unique_ptr<cluster::Epoch> epoch_of(Session& session, cluster::GroupId id, std::span<const int> ranks) {
  const auto& community = session.community();
  std::vector<int> seats;
  for (const int rank : ranks) {
    seats.push_back(session.epoch().group().seats[static_cast<std::size_t>(rank)]);
  }
  return std::make_unique<cluster::Epoch>(community->links, group_of(*community, id, std::move(seats)));
}

// After a call that all have made.
std::unique_ptr<Session> form(Session& session, const Session::Call& call, std::span<const int> ranks,
                              Clock::time_point deadline) {
  const auto& community = session.community();
  std::unique_ptr<cluster::Epoch> epoch =
      epoch_of(session, id_after(session.epoch(), call.number(), ranks), ranks);
  return equip(community, epoch, {}, std::min(deadline, now() + community->join_timeout));
}

std::vector<int> all_ranks(const Session& session) {
  std::vector<int> ranks(static_cast<std::size_t>(session.size()));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

std::optional<std::uint32_t> next_life(const Session& session) {
  return session.life() ? std::optional(*session.life() + 1) : std::nullopt;
}

std::vector<std::byte> to_bytes(std::span<const int> ranks) {
  ByteWriter out;
  for (const int rank : ranks) out.number(static_cast<std::uint32_t>(rank));
  return out.take();
}

void check_ranks(const Session& session, std::span<const int> ranks, std::string_view what) {
  std::vector<int> sorted(ranks.begin(), ranks.end());
  std::ranges::sort(sorted);
  const bool repeats = std::ranges::adjacent_find(sorted) != sorted.end();
  const bool is_inside = sorted.empty() || (sorted.front() >= 0 && sorted.back() < session.size());
  if (!repeats && is_inside && std::ranges::binary_search(sorted, session.rank())) return;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("{}: ranks {{{}}}; expected different ones of 0 to {}, with this worker's, {}, "
                          "among them",
                          what, fmt::join(ranks, ", "), session.size() - 1, session.rank()));
}

// The members are decided on. What goes wrong with this worker's own part is told to them by its leaving.
std::unique_ptr<Session> form_successor(const Session& session, cluster::Epoch::Successor next,
                                        Clock::time_point deadline) {
  const auto& community = session.community();
  const std::uint64_t completed = next.completed;
  std::optional<std::uint32_t> life = next_life(session);
  const auto set_up_deadline = [&] {
    return std::min(now() + community->join_timeout, std::max(deadline, now() + kLeastSetUpTime));
  };
  // Until a group is complete that nobody dies in. Earlier ones are left when this one stands.
  std::vector<std::unique_ptr<cluster::Epoch>> failed;
  for (;;) {
    auto epoch = std::make_unique<cluster::Epoch>(community->links, std::move(next.group));
    try {
      std::unique_ptr<Session> shrunk = equip(community, epoch, life, set_up_deadline());
      shrunk->set_completed_by_all(completed);
      return shrunk;
    } catch (const Error& error) {
      if (!epoch || !epoch->has_ended()) throw;
      log(LogLevel::kInfo, fmt::format("shrink begins once more: {}", error.what()));
    }
    failed.push_back(std::move(epoch));
    next = failed.back()->shrink(0, deadline);
    if (life) ++*life;
  }
}

}  // namespace

std::unique_ptr<Session> open_first_session(const std::shared_ptr<const Community>& community,
                                            Clock::time_point deadline) {
  std::vector<int> seats(community->workers.size());
  std::iota(seats.begin(), seats.end(), 0);
  auto epoch =
      std::make_unique<cluster::Epoch>(community->links, group_of(*community, kFirstGroup, std::move(seats)));
  return equip(community, epoch, 0, deadline);
}

std::unique_ptr<Session> shrink(Session& session, Clock::time_point deadline) {
  cluster::Epoch& epoch = session.epoch();
  const std::uint64_t completed = session.completed_calls();
  if (!epoch.has_ended()) {
    // A call like others, so that nobody's earlier one is cut short.
    try {
      Session::Call(session, 0, deadline).agree({.subject = cluster::Subject::kShrink, .text = "shrink"});
    } catch (const Error&) {
      if (!epoch.has_ended()) throw;
    }
  }
  cluster::Epoch::Successor next = epoch.shrink(completed, deadline);
  std::unique_ptr<Session> successor;
  try {
    successor = form_successor(session, std::move(next), deadline);
  } catch (...) {
    session.close();
    throw;
  }
  epoch.accuse({ErrorCode::kAborted, epoch.rank(), completed,
                "the cluster was shrunk: use the Cluster that came of it"});
  return successor;
}

std::unique_ptr<Session> duplicate(Session& session, Clock::time_point deadline) {
  Session::Call call(session, 0, deadline);
  call.agree({.subject = cluster::Subject::kDuplicate, .text = "duplicate"});
  return form(session, call, all_ranks(session), deadline);
}

std::unique_ptr<Session> split(Session& session, std::span<const int> ranks, Clock::time_point deadline) {
  Session::Call call(session, 0, deadline);
  cluster::Statement mine{.subject = cluster::Subject::kSplit,
                          .text = fmt::format("split {{{}}}", fmt::join(ranks, ", ")),
                          .request = to_bytes(ranks)};
  const std::vector<cluster::Statement> all =
      call.agree(std::move(mine), [&] { check_ranks(session, ranks, "split"); });
  for (const int rank : ranks) {
    const cluster::Statement& other = all[static_cast<std::size_t>(rank)];
    if (other.request != all[static_cast<std::size_t>(session.rank())].request)
      call.fail_by_difference(all[static_cast<std::size_t>(session.rank())], other, rank);
  }
  return form(session, call, ranks, deadline);
}

std::unique_ptr<Session> group(Session& session, std::span<const int> ranks, const GroupName& name,
                               Clock::time_point deadline) {
  check_ranks(session, ranks, "group");
  session.epoch().check();
  Hasher hasher;
  hasher.add(session.epoch().group().id);
  hasher.add(name.text);
  hasher.add(name.number);
  for (const int rank : ranks) hasher.add(static_cast<std::uint64_t>(rank));
  std::unique_ptr<cluster::Epoch> epoch = epoch_of(session, hasher.finish().low, ranks);
  epoch->meet(session.epoch(), deadline);
  return equip(session.community(), epoch, {}, deadline);
}

}  // namespace onesum::api
