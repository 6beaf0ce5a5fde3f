#include "cluster/launchers.h"

#include <algorithm>
#include <utility>

#include <onesum/error.h>

#include "base/text.h"

namespace onesum::cluster {

Environment::Environment(std::span<const std::string_view> entries) {
  for (const std::string_view entry : entries) {
    const std::size_t equals = entry.find('=');
    if (equals == std::string_view::npos) continue;
    values_.emplace(entry.substr(0, equals), entry.substr(equals + 1));
  }
}

std::optional<std::string_view> Environment::find(std::string_view name) const {
  const auto found = values_.find(name);
  if (found == values_.end() || found->second.empty()) return std::nullopt;
  return found->second;
}

std::string_view Environment::first_of(std::span<const std::string_view> names) const {
  const auto found =
      std::ranges::find_if(names, [this](std::string_view name) { return find(name).has_value(); });
  return found == names.end() ? std::string_view() : *found;
}

Variable Environment::note(std::string_view name, std::string_view decided, std::string_view set_by) const {
  constexpr std::size_t kLongest = 80;
  const std::string_view value = find(name).value_or("");
  const auto is_printable = [](char c) { return c >= 0x20 && c < 0x7f; };
  const bool is_fit = value.size() <= kLongest && std::ranges::all_of(value, is_printable);
  return {std::string(name), is_fit ? std::string(value) : quoted(value), std::string(decided),
          std::string(set_by)};
}

void refuse_variable(std::string_view name, std::string_view value, const std::string& expected) {
  throw Error(ErrorCode::kInvalidArgument, "environment variable " + std::string(name) + " is " +
                                               quoted(value) + "; expected " + expected);
}

LauncherReader::LauncherReader(const Environment& environment, std::string launcher,
                               std::string_view evidence)
    : environment_(environment), launcher_(std::move(launcher)), evidence_(evidence) {}

std::string_view LauncherReader::text(std::string_view name, const std::string& decided,
                                      const std::string& expected) {
  const auto value = find(name);
  if (!value) {
    throw Error(ErrorCode::kInvalidArgument,
                "environment variable " + std::string(name) + " is not set; expected " + expected +
                    ", because " + std::string(evidence_) + " is " + quoted(find(evidence_).value_or("")) +
                    " (" + launcher_ + ")");
  }
  honour(name, decided);
  return *value;
}

std::uint64_t LauncherReader::number(std::string_view name, const std::string& decided, std::uint64_t least,
                                     std::uint64_t most) {
  const std::string expected = "a number from " + std::to_string(least) + " to " + std::to_string(most);
  const auto parsed = parse_number(text(name, decided, expected), most);
  if (!parsed || *parsed < least) refuse(name, expected);
  return *parsed;
}

std::optional<int> LauncherReader::count_if_set(std::string_view name, const std::string& decided, int least,
                                                int most) {
  if (!find(name)) return std::nullopt;
  return count(name, decided, least, most);
}

void LauncherReader::read_ranks(Invitation& invitation, const Names& names) {
  invitation.size = count(names.size, "the number of workers", 1, kMostWorkers);
  invitation.rank = count(names.rank, "the rank of this worker", 0, kMostWorkers - 1);
  if (invitation.rank >= invitation.size) {
    refuse(names.rank, "less than " + std::string(names.size) + ", " + std::to_string(invitation.size));
  }
  if (!names.local_size.empty()) {
    invitation.local_size =
        count_if_set(names.local_size, "how many workers are on this machine", 1, kMostWorkers);
  }
  if (invitation.local_size > invitation.size) {
    refuse(names.local_size, "at most " + std::string(names.size) + ", " + std::to_string(invitation.size));
  }
  if (!names.local_rank.empty()) {
    invitation.local_rank =
        count_if_set(names.local_rank, "which of this machine's workers this is", 0, kMostWorkers - 1);
  }
  const int local_limit = invitation.local_size.value_or(invitation.size);
  if (invitation.local_rank >= local_limit) {
    refuse(names.local_rank, "less than " +
                                 std::string(invitation.local_size ? names.local_size : names.size) + ", " +
                                 std::to_string(local_limit));
  }
  invitation.workers = worker_names(invitation.size);
}

void LauncherReader::refuse(std::string_view name, const std::string& expected) const {
  refuse_variable(name, find(name).value_or(""), expected);
}

void LauncherReader::honour(std::string_view name, const std::string& decided) {
  honoured_.push_back(environment_.note(name, decided, launcher_));
}

Invitation LauncherReader::finish(Invitation invitation) {
  invitation.source = launcher_;
  invitation.variables = std::move(honoured_);
  return invitation;
}

void meet_on_this_machine(Invitation& invitation, const Surroundings& surroundings) {
  invitation.venue = local_socket(surroundings.uid, invitation.job);
}

std::vector<Device> worker_names(int size) {
  std::vector<Device> workers;
  workers.reserve(static_cast<std::size_t>(size));
  for (int task = 0; task < size; ++task)
    workers.emplace_back("/job:worker/replica:0/task:" + std::to_string(task));
  return workers;
}

}  // namespace onesum::cluster
