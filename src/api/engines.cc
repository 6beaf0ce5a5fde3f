#include "api/engines.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <onesum/error.h>

#include "api/gpu_report.h"
#include "api/outboxes.h"
#include "base/amounts.h"
#include "base/log.h"
#include "cluster/side_connections.h"
#include "engine/faulty/faulty_transport.h"
#include "engine/host/host_engine.h"
#include "engine/router.h"
#include "engine/shm/segment.h"
#include "engine/shm/shm_transport.h"
#include "engine/tcp/tcp_transport.h"
#include "engine/ucx/ucx_transport.h"

namespace onesum::api {
namespace {

engine::HostOptions host_options(const Config& config) {
  engine::HostOptions options;
  if (config.threads) options.threads = *config.threads;
  options.pool_limit_bytes = config.pool_bytes;
  return options;
}

// What a worker that has left sent before may still be on its way.
constexpr std::chrono::seconds kFarewell{1};

// Makes what carries messages, together with the other workers. Each tells each other one thing first: those
// on the same machine pass the descriptors of their memory, the others where they are reached.
class TransportMaker {
 public:
  TransportMaker(const TransportRequest& request, cluster::Epoch& epoch)
      : request_(request),
        epoch_(epoch),
        limits_(limits_of({request.is_near.size(), request.is_spread, request.outbox_bytes,
                           is_network(request.choice), request.is_crowded})) {
    for (int r = 0; r < epoch.size(); ++r) is_near_.push_back(is_near(r));
  }

  MadeTransport make() {
    MadeTransport made;
    Fd wake = engine::shm::make_wake_descriptor();
    made.wake = wake.get();
    std::unique_ptr<engine::shm::ShmTransport> shm = make_shm(std::move(wake));
    made.notes = shm->notes();
    made.notes_of.resize(static_cast<std::size_t>(epoch_.size()));
    for (const int rank : others(true)) made.notes_of[static_cast<std::size_t>(rank)] = shm->notes(rank);
    std::unique_ptr<engine::Transport> transport = std::move(shm);
    if (!std::ranges::all_of(is_near_, std::identity{})) {
      transport = std::make_unique<engine::Router>(std::move(transport), make_far(), is_near_);
    }
    if (is_logged(LogLevel::kInfo)) log(LogLevel::kInfo, routes());
    if (!request_.faults.empty()) {
      engine::FaultyOptions options;
      options.rank = epoch_.rank();
      options.epoch = request_.life;
      options.faults = engine::parse_faults(request_.faults);
      options.damage_next = damage_next_;
      transport = std::make_unique<engine::FaultyTransport>(std::move(transport), std::move(options));
    }
    made.transport = std::move(transport);
    return made;
  }

 private:
  int seat_of(int rank) const { return epoch_.group().seats[static_cast<std::size_t>(rank)]; }

  // Shared memory wants the same machine, and a socket that carries descriptors.
  bool is_near(int rank) const {
    if (rank == epoch_.rank()) return true;
    const bool can_share =
        request_.is_near[static_cast<std::size_t>(rank)] && epoch_.links().carries_descriptors(seat_of(rank));
    if (request_.choice == TransportChoice::kShm && !can_share) {
      throw Error(ErrorCode::kInvalidArgument,
                  epoch_.name_of(rank) +
                      " is not on this machine, and ONESUM_TRANSPORT is shm; expected auto, tcp or ucx");
    }
    return can_share &&
           (request_.choice == TransportChoice::kShm || request_.choice == TransportChoice::kAuto);
  }

  // Other ranks that are reached this way.
  std::vector<int> others(bool are_near) const {
    std::vector<int> ranks;
    for (int r = 0; r < epoch_.size(); ++r) {
      if (r != epoch_.rank() && is_near_[static_cast<std::size_t>(r)] == are_near) ranks.push_back(r);
    }
    return ranks;
  }

  std::unique_ptr<engine::shm::ShmTransport> make_shm(Fd wake) {
    namespace shm = engine::shm;
    const shm::Layout layout(epoch_.size(), limits_);
    shm::Segment own(epoch_.rank(), layout);
    const int descriptors[] = {own.descriptor(), wake.get()};
    for (const int rank : others(true)) epoch_.send_set_up(rank, {}, descriptors);
    std::vector<shm::Peer> peers;
    for (const int rank : others(true)) {
      cluster::Message message = epoch_.receive_set_up(rank, request_.deadline);
      if (message.descriptors.size() != std::size(descriptors)) {
        throw Error(ErrorCode::kAborted, epoch_.name_of(rank) + " sent no descriptors of its shared memory");
      }
      peers.push_back(
          {shm::PeerSegment(message.descriptors[0].get(), rank, layout), std::move(message.descriptors[1])});
    }
    return std::make_unique<shm::ShmTransport>(std::move(own), std::move(wake), std::move(peers));
  }

  std::unique_ptr<engine::Transport> make_far() {
    return request_.choice == TransportChoice::kUcx ? make_ucx() : make_tcp();
  }

  std::unique_ptr<engine::Transport> make_tcp() {
    const engine::tcp::TcpOptions options{epoch_.rank(), epoch_.size(), limits_, request_.checksums};
    std::vector<Fd> sockets;
    rather_verdict(
        [&] { sockets = cluster::connect_beside_links(epoch_, others(false), request_.deadline); });
    auto transport = std::make_unique<engine::tcp::TcpTransport>(options, std::move(sockets));
    damage_next_ = [tcp = transport.get()](int peer) { return tcp->damage_next(peer); };
    far_ = "TCP at " + address_to_others();
    return transport;
  }

  std::unique_ptr<engine::Transport> make_ucx() {
    engine::UcxOptions options;
    options.rank = epoch_.rank();
    options.size = epoch_.size();
    options.limits = limits_;
    options.transports = engine::ucx_transports();
    options.devices = address_to_others();
    options.checksums = request_.checksums;
    std::unique_ptr<engine::UcxTransport> transport = engine::make_ucx_transport(options);
    for (const int rank : others(false)) {
      epoch_.send_set_up(rank, std::as_bytes(std::span(transport->address())));
    }
    std::vector<std::string> addresses(static_cast<std::size_t>(epoch_.size()));
    for (const int rank : others(false)) {
      const std::vector<std::byte> payload = epoch_.receive_set_up(rank, request_.deadline).payload;
      addresses[static_cast<std::size_t>(rank)].assign(reinterpret_cast<const char*>(payload.data()),
                                                       payload.size());
    }
    rather_verdict([&] { connect(*transport, addresses); });
    damage_next_ = [ucx = transport.get()](int peer) { return ucx->damage_next(peer); };
    far_ = fmt::format("UCX at {}, which reaches memory of kind {}", options.devices,
                       fmt::join(transport->memory_types(), ", "));
    return transport;
  }

  // Whoever connects may see before the epoch does that somebody is gone.
  template <class Connect>
  void rather_verdict(const Connect& connect) {
    try {
      connect();
    } catch (const Error& error) {
      if (error.code() == ErrorCode::kUnavailable && epoch_.ends_within(kFarewell)) epoch_.throw_verdict();
      throw;
    }
  }

  void connect(engine::UcxTransport& transport, const std::vector<std::string>& addresses) {
    transport.connect(addresses);
    std::optional<Clock::time_point> farewell;
    while (const std::optional<int> silent = transport.unanswered()) {
      transport.progress();
      epoch_.check();
      if (!farewell && epoch_.sighting(*silent).has_left) farewell = now() + kFarewell;
      if (farewell && now() > *farewell) {
        epoch_.accuse({ErrorCode::kAborted, *silent, 0,
                       epoch_.name_of(*silent) + " closed the cluster before any call"});
        epoch_.throw_verdict();
      }
      if (now() < request_.deadline) continue;
      throw Error(ErrorCode::kDeadlineExceeded,
                  epoch_.name_of(*silent) +
                      " does not answer through UCX; does a firewall stand between, or is another interface "
                      "meant (UCX_NET_DEVICES)?");
    }
  }

  // For people who wonder what carries their tensors.
  std::string routes() const {
    const std::vector<int> near = others(true);
    const std::vector<int> far = others(false);
    std::string text = fmt::format("rank {} reaches", epoch_.rank());
    if (!near.empty()) text += fmt::format(" {} through shared memory", fmt::join(near, ", "));
    if (!near.empty() && !far.empty()) text += ", and";
    if (!far.empty()) text += fmt::format(" {} through {}", fmt::join(far, ", "), far_);
    return text;
  }

  // Of this machine, as the control connections use it: it routes.
  std::string address_to_others() const {
    for (const int rank : others(false)) {
      if (!epoch_.links().carries_descriptors(seat_of(rank)))
        return epoch_.links().host_towards(seat_of(rank));
    }
    return "127.0.0.1";
  }

  const TransportRequest& request_;
  cluster::Epoch& epoch_;
  engine::Limits limits_;
  std::vector<bool> is_near_;  // by rank: reached through shared memory
  std::string far_;            // how the others are
  std::function<bool(int)> damage_next_ = [](int) { return false; };  // of messages to them
};

}  // namespace

NetworkReport report_network() {
  try {
    engine::UcxReport found = engine::report_ucx();
    const bool is_there = !found.version.empty();
    return {std::move(found.version), is_there ? "" : "this build was made without it",
            std::move(found.memory_types)};
  } catch (const Error& error) {
    return {{}, error.what(), {}};
  }
}

engine::ThreadedEngine& host_engine() {
  // Deliberately not destroyed (see the header); the static pointer keeps it reachable. If creating it
  // throws, the next call tries again.
  static engine::ThreadedEngine* const host =
      engine::make_host_engine(host_options(process_config())).release();
  return *host;
}

MadeTransport make_transport(const TransportRequest& request, cluster::Epoch& epoch) {
  return TransportMaker(request, epoch).make();
}

const engine::GpuSearch& gpus() {
  static const engine::GpuSearch* const search = [] {
    const Config& config = process_config();
    auto found = std::make_unique<engine::GpuSearch>(
        engine::find_gpus({.plugin = config.cuda_plugin, .pool_bytes = config.pool_bytes}));
    log(LogLevel::kInfo,
        found->platform == nullptr
            ? "no GPUs: " + found->reason
            : fmt::format("{} of {}, by {}",
                          counted(static_cast<std::size_t>(found->platform->devices()), "GPU"),
                          to_string(found->platform->versions()), found->plugin));
    return found.release();
  }();
  return *search;
}

std::string why_not_served(const Device& device) {
  if (!device.type() || *device.type() == "CPU") return {};
  if (*device.type() != "GPU") return "no engine for " + *device.type() + " devices is there";
  const engine::GpuSearch& found = gpus();
  if (found.platform == nullptr) return "no GPU was found: " + found.reason;
  const int there = found.platform->devices();
  if (device.index().value_or(0) < there) return {};
  return fmt::format("this process has {}", counted(static_cast<std::size_t>(there), "GPU"));
}

engine::QueuedEngine* queued_engine_of(const Device& device) {
  const std::string reason = why_not_served(device);
  if (!reason.empty()) throw Error(ErrorCode::kUnavailable, "device " + device.to_string() + ": " + reason);
  if (!device.type() || *device.type() == "CPU") return nullptr;
  return &gpus().platform->device(device.index().value_or(0));
}

engine::DeviceEngine& engine_of(const Device& device) {
  engine::QueuedEngine* const queued = queued_engine_of(device);
  if (queued != nullptr) return *queued;
  return host_engine();
}

std::vector<engine::QueuedEngine*> queued_engines_of(std::span<const Device> devices,
                                                     const std::function<bool(std::size_t)>& is_here) {
  std::vector<engine::QueuedEngine*> engines(devices.size());
  for (std::size_t d = 0; d < devices.size(); ++d) {
    if (is_here(d)) engines[d] = queued_engine_of(devices[d]);
  }
  if (std::ranges::all_of(engines, [](const engine::QueuedEngine* engine) { return engine == nullptr; })) {
    return {};
  }
  return engines;
}

}  // namespace onesum::api
