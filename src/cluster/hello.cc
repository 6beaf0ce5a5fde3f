#include "cluster/hello.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include <onesum/error.h>
#include <onesum/version.h>

#include "cluster/socket.h"

namespace onesum::cluster {
namespace {

// Beyond any deadline that is meant.
constexpr std::chrono::milliseconds kLongest = std::chrono::hours(24 * 365);

template <class Decode>
auto decoded(const Message& message, Kind kind, const Decode& decode)
    -> std::optional<decltype(decode(message.payload))> {
  if (message.kind != number_of(kind)) return std::nullopt;
  try {
    return decode(message.payload);
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace

Hello hello_of(const Meeting& meeting) {
  Hello hello;
  hello.version = meeting.version.empty() ? ONESUM_VERSION : meeting.version;
  hello.rank = static_cast<std::uint32_t>(meeting.rank);
  hello.size = static_cast<std::uint32_t>(meeting.size);
  hello.job = meeting.job;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(meeting.deadline - now());
  hello.patience_milliseconds =
      static_cast<std::uint64_t>(std::clamp(left, std::chrono::milliseconds(0), kLongest).count());
  hello.settings = meeting.settings;
  hello.card.machine = meeting.machine;
  hello.card.offer = meeting.offer;
  return hello;
}

Clock::time_point deadline_of(const Hello& hello) {
  const auto longest = static_cast<std::uint64_t>(kLongest.count());
  return now() + std::chrono::milliseconds(std::min(hello.patience_milliseconds, longest));
}

void check_secret(const std::vector<MeetingPlace>& places, const std::optional<Secret>& secret) {
  if (secret) return;
  for (const MeetingPlace& place : places) {
    if (place.is_on_this_machine()) continue;
    throw Error(
        ErrorCode::kInvalidArgument,
        fmt::format("the workers meet at {}, which other machines can reach, and there is no secret; {}",
                    to_string(place), how_to_make_a_secret()));
  }
}

std::string add_unix_listener(Reception& reception) {
  Made made = listen_at(unix_address(""));
  if (!made.socket) {
    throw Error(ErrorCode::kUnavailable,
                fmt::format("cannot listen on a Unix socket: {}", std::strerror(made.error)));
  }
  std::string name = place_of(local_address(made.socket)).unix_name;
  reception.listen(std::move(made.socket));
  return name;
}

bool are_on_one_machine(const Card& a, const Card& b) noexcept {
  return !a.machine.empty() && a.machine == b.machine && !a.unix_name.empty() && !b.unix_name.empty();
}

std::optional<Hello> hello_in(const Arrival& arrival) {
  return decoded(arrival.message, Kind::kHello, decode_hello);
}

std::optional<std::uint32_t> introduced_rank(const Arrival& arrival, const Ticket& ticket) {
  const auto introduction = decoded(arrival.message, Kind::kIntroduction, decode_introduction);
  if (!introduction || introduction->ticket != ticket) return std::nullopt;
  return introduction->rank;
}

std::optional<Refusal> refusal_in(const Message& message, Kind kind) {
  return decoded(message, kind, decode_refusal);
}

}  // namespace onesum::cluster
