// Messages between processes by UCX: TCP, or whatever else UCX finds between the machines.
//
// Each rank makes its transport, passes its address() to the others by other means (the rendezvous), gives
// theirs to connect() and makes progress until nobody is unanswered(); after that it is a Transport like any
// other. Peers without an address are not reached through it. Make it after a fork, never before.
//
// A message is a header of ours and the payload, sent in one piece from the outbox and received in one piece
// into the inbox. How far a rank has got travels in the headers of its messages; a rank that has nothing to
// send tells it in messages without contents.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/transport.h"

namespace onesum::engine {

// Alike on all ranks, except for rank and devices.
struct UcxOptions {
  int rank = 0;
  int size = 1;
  Limits limits;
  // As in UCX_TLS: "tcp", "rc,tcp". Of these UCX takes such as tell of a peer's death. "tcp" alone is tuned,
  // and made safe against a fault of UCX 1.13; anything else is left as UCX has it.
  std::string transports = "tcp";
  // As in UCX_NET_DEVICES: "eth0", "mlx5_0:1". An entry may be a numeric address of this machine, and stands
  // for the interface that has it. Empty: the environment's, else UCX's choice.
  std::string devices;
  std::uint32_t epoch = 0;
  bool checksums = false;  // CRC32C of every message, verified on arrival
};

struct PeerFailure {
  int rank = 0;
  std::string text;  // what UCX says of it
  friend bool operator==(const PeerFailure&, const PeerFailure&) = default;
};

class UcxTransport : public Transport {
 public:
  // By which others reach this rank: opaque bytes, some hundred of them.
  virtual const std::string& address() const noexcept = 0;

  // The addresses of all ranks, in rank order; empty for those that are not reached through this transport,
  // and not looked at for this rank itself. Once. Throws unavailable naming the rank that cannot be reached,
  // as far as that is known without an answer.
  virtual void connect(std::span<const std::string> addresses) = 0;

  // The lowest rank with which this one has not exchanged a first message yet; changes by progress(). Whoever
  // waits decides for how long: a network that lets nothing through shows here.
  virtual std::optional<int> unanswered() const noexcept = 0;

  // The first peer whose connection broke. A peer that left in good order is no different: whoever asks
  // knows who is still expected. May be asked after quit() too.
  virtual std::optional<PeerFailure> failure() const = 0;

  // The kinds of memory that UCX reaches here, in its own words: "host", "cuda", … Outboxes and inboxes are
  // host memory, whatever it says.
  virtual std::vector<std::string> memory_types() const = 0;

  // For drills: the next message to this peer that has a payload travels with one byte of it changed after
  // its checksum was made. False if the peer is not reached through this transport.
  virtual bool damage_next(int peer) noexcept = 0;
};

// Whether this build has UCX.
bool has_ucx() noexcept;

// For UcxOptions::transports: those of RDMA, where this machine has a device for it, with TCP besides; else
// TCP alone.
std::string ucx_transports();

// What UCX says of itself where it may use every transport that it finds.
struct UcxReport {
  std::string version;  // empty: this build has none
  std::vector<std::string> memory_types;
};

// Throws unavailable where it cannot be asked.
UcxReport report_ucx();

// Throws invalid_argument for options that cannot be, unavailable where UCX has no such transport or device,
// and unimplemented in a build without UCX, naming what to install.
std::unique_ptr<UcxTransport> make_ucx_transport(const UcxOptions& options);

}  // namespace onesum::engine
