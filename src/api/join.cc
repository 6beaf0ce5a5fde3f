#include "api/join.h"

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

#include "api/community.h"
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
  std::string constants;             // worker 0's count
  std::vector<std::uint32_t> cores;  // that it may use
};

std::vector<std::byte> to_bytes(const Offer& offer) {
  ByteWriter out;
  out.text(offer.machine);
  out.text(offer.constants);
  for (const std::uint32_t core : offer.cores) out.number(core);
  return out.take();
}

Offer offer_from(std::span<const std::byte> bytes) {
  ByteReader in(bytes);
  Offer offer;
  offer.machine = in.text();
  offer.constants = in.text();
  while (in.left() > 0) offer.cores.push_back(in.number<std::uint32_t>());
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
  meeting.settings = {{"ONESUM_TRANSPORT", std::string(to_string(config.transport))},
                      {"ONESUM_CHECKSUMS", config.checksums ? "on" : "off"},
                      {"ONESUM_OUTBOX_BYTES", std::to_string(config.outbox_bytes)}};
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

// As many as a quota leaves of them.
std::vector<std::uint32_t> usable_cores() {
  std::vector<std::uint32_t> cores = cores_of_process();
  if (cores.size() > available_cores()) cores.resize(available_cores());
  return cores;
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
  const Offer mine{machine_identity(config), plan::to_json(constants_in_force().values), usable_cores()};
  cluster::Met met = meet_others(invitation, config, mine, deadline);

  auto community = std::make_shared<Community>();
  for (const std::vector<std::byte>& bytes : met.offers) {
    const Offer offer = offer_from(bytes);
    if (community->machines.empty()) community->constants = plan::constants_from_json(offer.constants);
    community->machines.push_back(offer.machine);
    community->cores.push_back(offer.cores);
  }
  community->workers = invitation.workers;
  community->transport = config.transport;
  community->checksums = config.checksums;
  community->outbox_bytes = config.outbox_bytes;
  community->progress_timeout = config.progress_timeout;
  community->join_timeout = config.join_timeout;
  community->report = config.report;
  community->links =
      std::make_shared<cluster::Links>(invitation.rank, std::move(met.connections), config.progress_timeout);
  community->faults = config.fault.value_or("");
  return open_first_session(community, deadline);
}

}  // namespace onesum::api
