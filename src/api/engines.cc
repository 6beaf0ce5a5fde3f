#include "api/engines.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include <onesum/error.h>

#include "cluster/messages.h"
#include "cluster/socket.h"
#include "engine/faulty/faulty_transport.h"
#include "engine/host/host_engine.h"
#include "engine/router.h"
#include "engine/shm/segment.h"
#include "engine/shm/shm_transport.h"
#include "engine/ucx/ucx_transport.h"

namespace onesum::api {
namespace {

engine::HostOptions host_options(const Config& config) {
  engine::HostOptions options;
  if (config.threads) options.threads = *config.threads;
  options.pool_limit_bytes = config.pool_bytes;
  return options;
}

// Between any two workers, in either direction. Alike everywhere: results of rings depend on nothing of this,
// but both ends must cut alike.
constexpr engine::Limits kLimits{std::size_t{264} << 10, 1024, 2};

// What workers tell each other between meeting and the first call.
constexpr std::uint16_t kDescriptors = cluster::kFirstFreeKind;
constexpr std::uint16_t kAddress = cluster::kFirstFreeKind + 1;

// Makes what carries messages, together with the other workers.
class TransportMaker {
 public:
  TransportMaker(const TransportRequest& request, std::vector<cluster::Connection>& connections)
      : request_(request), connections_(connections) {
    for (std::size_t r = 0; r < connections.size(); ++r) is_near_.push_back(is_near(r));
  }

  MadeTransport make() {
    Fd wake = engine::shm::make_wake_descriptor();
    const int waker = wake.get();
    std::unique_ptr<engine::Transport> transport = make_shm(std::move(wake));
    if (!std::ranges::all_of(is_near_, std::identity{})) {
      transport = std::make_unique<engine::Router>(std::move(transport), make_ucx(), is_near_);
    }
    if (!request_.faults.empty()) {
      engine::FaultyOptions options;
      options.rank = request_.rank;
      options.faults = engine::parse_faults(request_.faults);
      transport = std::make_unique<engine::FaultyTransport>(std::move(transport), std::move(options));
    }
    return {std::move(transport), waker};
  }

 private:
  bool is_other(std::size_t rank) const { return static_cast<int>(rank) != request_.rank; }

  // Shared memory wants the same machine, and a socket that carries descriptors.
  bool is_near(std::size_t rank) const {
    if (!is_other(rank)) return true;
    const bool can_share = request_.is_near[rank] && connections_[rank].is_unix();
    if (request_.choice == TransportChoice::kShm && !can_share) {
      throw Error(ErrorCode::kInvalidArgument,
                  connections_[rank].peer() +
                      " is not on this machine, and ONESUM_TRANSPORT is shm; expected auto, tcp or ucx");
    }
    return can_share &&
           (request_.choice == TransportChoice::kShm || request_.choice == TransportChoice::kAuto);
  }

  cluster::Message receive(std::size_t rank, std::uint16_t kind) {
    cluster::Message message = connections_[rank].receive(request_.deadline);
    if (message.kind == kind) return message;
    throw Error(ErrorCode::kAborted, connections_[rank].peer() + " sent message " +
                                         std::to_string(message.kind) + " where " + std::to_string(kind) +
                                         " was expected");
  }

  std::unique_ptr<engine::Transport> make_shm(Fd wake) {
    namespace shm = engine::shm;
    const shm::Layout layout(static_cast<int>(connections_.size()), kLimits);
    shm::Segment own(request_.rank, layout);
    const int descriptors[] = {own.descriptor(), wake.get()};
    for (std::size_t r = 0; r < connections_.size(); ++r) {
      if (is_other(r) && is_near_[r]) connections_[r].send(kDescriptors, {}, request_.deadline, descriptors);
    }
    std::vector<shm::Peer> peers;
    for (std::size_t r = 0; r < connections_.size(); ++r) {
      if (!is_other(r) || !is_near_[r]) continue;
      cluster::Message message = receive(r, kDescriptors);
      if (message.descriptors.size() != std::size(descriptors)) {
        throw Error(ErrorCode::kAborted,
                    connections_[r].peer() + " sent no descriptors of its shared memory");
      }
      peers.push_back({shm::PeerSegment(message.descriptors[0].get(), static_cast<int>(r), layout),
                       std::move(message.descriptors[1])});
    }
    return std::make_unique<shm::ShmTransport>(std::move(own), std::move(wake), std::move(peers));
  }

  std::unique_ptr<engine::Transport> make_ucx() {
    engine::UcxOptions options;
    options.rank = request_.rank;
    options.size = static_cast<int>(connections_.size());
    options.limits = kLimits;
    if (request_.choice == TransportChoice::kUcx) options.transports = "rc,ud,tcp";
    options.devices = address_to_others();
    std::unique_ptr<engine::UcxTransport> transport = engine::make_ucx_transport(options);
    std::vector<std::string> addresses(connections_.size());
    for (std::size_t r = 0; r < connections_.size(); ++r) {
      if (!is_near_[r])
        connections_[r].send(kAddress, std::as_bytes(std::span(transport->address())), request_.deadline);
    }
    for (std::size_t r = 0; r < connections_.size(); ++r) {
      if (is_near_[r]) continue;
      const std::vector<std::byte> payload = receive(r, kAddress).payload;
      addresses[r].assign(reinterpret_cast<const char*>(payload.data()), payload.size());
    }
    transport->connect(addresses);
    while (const std::optional<int> silent = transport->unanswered()) {
      transport->progress();
      if (now() < request_.deadline) continue;
      throw Error(ErrorCode::kDeadlineExceeded,
                  connections_[static_cast<std::size_t>(*silent)].peer() +
                      " does not answer through UCX; does a firewall stand between, or is another interface "
                      "meant (UCX_NET_DEVICES)?");
    }
    return transport;
  }

  // Of this machine, as the control connections use it: it routes.
  std::string address_to_others() const {
    for (std::size_t r = 0; r < connections_.size(); ++r) {
      if (is_near_[r] || connections_[r].is_unix()) continue;
      return cluster::place_of(cluster::local_address(connections_[r].socket())).host;
    }
    return "127.0.0.1";
  }

  const TransportRequest& request_;
  std::vector<cluster::Connection>& connections_;
  std::vector<bool> is_near_;  // by rank: reached through shared memory
};

}  // namespace

engine::DeviceEngine& host_engine() {
  // Deliberately not destroyed (see the header); the static pointer keeps it reachable. If creating it
  // throws, the next call tries again.
  static engine::DeviceEngine* const host =
      engine::make_host_engine(host_options(process_config())).release();
  return *host;
}

MadeTransport make_transport(const TransportRequest& request, std::vector<cluster::Connection>& connections) {
  return TransportMaker(request, connections).make();
}

engine::DeviceEngine& engine_of(const Device& device) {
  if (device.type() && *device.type() != "CPU") {
    const std::string kind = *device.type() == "GPU" ? "GPUs yet" : "devices of type " + *device.type();
    throw Error(ErrorCode::kUnavailable, "device " + device.to_string() + ": this build has no engine for " +
                                             kind + "; expected a CPU");
  }
  return host_engine();
}

}  // namespace onesum::api
