#include "api/join.h"

#include <algorithm>
#include <array>
#include <bit>
#include <fstream>
#include <optional>
#include <utility>
#include <variant>

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <onesum/error.h>

#include "api/engines.h"
#include "api/machine_constants.h"
#include "base/bytes.h"
#include "base/machine.h"
#include "cluster/address_board.h"
#include "cluster/rendezvous.h"

namespace onesum::api {
namespace {

// What a worker tells all others when they meet.
struct Offer {
  std::string machine;
  std::string constants;  // worker 0's count
};

std::vector<std::byte> to_bytes(const Offer& offer) {
  ByteWriter out;
  out.text(offer.machine);
  out.text(offer.constants);
  return out.take();
}

Offer offer_from(std::span<const std::byte> bytes) {
  ByteReader in(bytes);
  Offer offer;
  offer.machine = in.text();
  offer.constants = in.text();
  in.expect_end();
  return offer;
}

std::optional<cluster::Secret> secret_of(const Config& config) {
  if (config.secret) return cluster::Secret::from_text(*config.secret);
  if (config.secret_file) return cluster::Secret::from_file(*config.secret_file);
  return std::nullopt;
}

// Where worker 0 is, if that was known before anybody ran.
std::optional<cluster::MeetingPlace> fixed_place(const cluster::Venue& venue) {
  if (const auto* socket = std::get_if<cluster::LocalSocket>(&venue)) {
    return cluster::MeetingPlace{.unix_name = socket->name};
  }
  if (const auto* address = std::get_if<HostPort>(&venue)) {
    return cluster::MeetingPlace{.host = address->host, .port = address->port};
  }
  return std::nullopt;
}

std::string unique_name() {
  std::array<std::byte, 8> random{};
  cluster::fill_with_random(random);
  return fmt::format("{}-{:016x}", ::getpid(), std::bit_cast<std::uint64_t>(random));
}

// Meets where the invitation says, or where worker 0 tells through the launcher.
cluster::Met meet_others(const cluster::Invitation& invitation, const Config& config, const Offer& offer,
                         Clock::time_point deadline) {
  cluster::Meeting meeting;
  meeting.rank = invitation.rank;
  meeting.size = invitation.size;
  meeting.job = invitation.job;
  meeting.secret = secret_of(config);
  meeting.deadline = deadline;
  meeting.offer = to_bytes(offer);
  meeting.settings = {{"ONESUM_TRANSPORT", std::string(to_string(config.transport))}};
  meeting.machine = offer.machine;
  std::unique_ptr<cluster::AddressBoard> board;
  if (const auto place = fixed_place(invitation.venue)) {
    meeting.place = *place;
  } else {
    board = cluster::open_address_board(invitation, deadline);
    // Only worker 0 takes the place, and publishes it. The job may have no name: another of this user's must
    // not be met there.
    if (invitation.is_on_one_machine()) meeting.place = cluster::place_on_this_machine(unique_name());
    meeting.publish = [&](const std::string& places) { board->publish(places, deadline); };
    meeting.lookup = [&](Clock::time_point until) { return board->lookup(until); };
  }
  return cluster::meet(std::move(meeting));
}

std::vector<std::string> names_of(const std::vector<Device>& workers) {
  std::vector<std::string> names;
  for (const Device& worker : workers) names.push_back(worker.to_string());
  return names;
}

}  // namespace

std::string machine_identity(const Config& config) {
  if (config.machine) return *config.machine;
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string boot;
  std::getline(file, boot);
  struct stat network{};
  if (boot.empty() || ::stat("/proc/self/ns/net", &network) != 0) return {};
  return fmt::format("{}/{}", boot, network.st_ino);
}

std::unique_ptr<Session> join(const cluster::Invitation& invitation, const Config& config) {
  const Clock::time_point deadline = now() + config.join_timeout;
  const Offer mine{machine_identity(config), plan::to_json(constants_in_force().values)};
  cluster::Met met = meet_others(invitation, config, mine, deadline);

  std::vector<Offer> offers;
  for (const std::vector<std::byte>& bytes : met.offers) offers.push_back(offer_from(bytes));
  TransportRequest request;
  request.rank = invitation.rank;
  request.choice = config.transport;
  request.faults = config.fault.value_or("");
  request.deadline = deadline;
  for (std::size_t r = 0; r < offers.size(); ++r) {
    request.is_near.push_back(!mine.machine.empty() && offers[r].machine == mine.machine);
  }
  MadeTransport made = make_transport(request, met.connections);

  SessionOptions options;
  options.workers = invitation.workers;
  options.constants = plan::constants_from_json(offers.front().constants);
  options.progress = config.progress_timeout;
  options.report = config.report;
  const auto near = static_cast<std::size_t>(std::ranges::count(request.is_near, true));
  options.is_crowded = near > available_cores();
  cluster::EpochOptions epoch;
  epoch.names = names_of(invitation.workers);
  epoch.silence = config.progress_timeout;
  epoch.wake = made.wake;
  auto life = std::make_unique<cluster::Epoch>(invitation.rank, std::move(met.connections), std::move(epoch));
  return std::make_unique<Session>(std::move(made.transport), std::move(life), std::move(options));
}

}  // namespace onesum::api
