// Settings of the process, read from its environment once.
//
// The variables are listed in docs/configuration.md. One that begins with ONESUM_ and is not among them is an
// error: a misspelt setting must not go unnoticed.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/host_port.h"
#include "base/log.h"
#include "base/worker_report.h"

namespace onesum {

// What carries tensors between workers.
enum class TransportChoice : std::uint8_t { kAuto, kShm, kTcp, kUcx };

// Whether workers of one machine do not share memory by it.
inline bool is_network(TransportChoice choice) noexcept {
  return choice == TransportChoice::kTcp || choice == TransportChoice::kUcx;
}

// "auto", "shm", "tcp", "ucx"
std::string_view to_string(TransportChoice choice) noexcept;

// More workers than this are a mistake.
inline constexpr int kMostWorkers = 4096;

struct Config {
  // ONESUM_THREADS; absent: as many as the cores the process may use.
  std::optional<unsigned> threads;
  // ONESUM_POOL_BYTES, of freed memory kept for reuse; absent: the engine's choice.
  std::optional<std::size_t> pool_bytes;
  // ONESUM_CUDA_PLUGIN: where the library for GPUs is; absent: beside this one.
  std::optional<std::string> cuda_plugin;
  // ONESUM_LOG
  LogLevel log_level = LogLevel::kWarning;
  // ONESUM_REPORT; absent: nobody wants to know.
  std::optional<ReportTarget> report;

  // ---- of clusters ----
  // ONESUM_RANK, ONESUM_SIZE, ONESUM_JOB: set by `onesum run`, or by hand. Each by itself here; whether they
  // fit together is for whoever reads all of them (cluster/environment.h).
  std::optional<int> rank;
  std::optional<int> size;
  std::optional<std::string> job;
  // ONESUM_ADDRESS: where worker 0 is.
  std::optional<HostPort> address;
  // ONESUM_SECRET or ONESUM_SECRET_FILE, never both. A secret is never part of a message.
  std::optional<std::string> secret;
  std::optional<std::string> secret_file;
  // ONESUM_TRANSPORT
  TransportChoice transport = TransportChoice::kAuto;
  // ONESUM_CHECKSUMS: messages over the network have one, which is verified on arrival.
  bool checksums = false;
  // ONESUM_OUTBOX_BYTES: of memory for messages between this worker and the others, at most.
  std::size_t outbox_bytes = std::size_t{64} << 20;
  // ONESUM_MACHINE: workers with the same text are on one machine; absent: found out.
  std::optional<std::string> machine;
  // ONESUM_PROGRESS_TIMEOUT: a worker that makes no progress inside a call for so long has failed.
  std::chrono::milliseconds progress_timeout = std::chrono::seconds(60);
  // ONESUM_JOIN_TIMEOUT: workers that have not come after so long are missing.
  std::chrono::milliseconds join_timeout = std::chrono::minutes(5);
  // ONESUM_FAULT: what the faulty engine shall do, in its own grammar.
  std::optional<std::string> fault;

  friend bool operator==(const Config&, const Config&) = default;
};

// From entries of the form NAME=value; those of other names are passed over. Throws invalid_argument naming
// the variable, its value and what is expected.
Config parse_config(std::span<const std::string_view> environment);

// The environment as it was when one of these was first called. A bad one makes every call throw the same
// invalid_argument; the log level is then that of an empty environment.
const Config& process_config();
LogLevel configured_log_level() noexcept;

// A copy of the environment as it is now, entries of the form NAME=value.
std::vector<std::string> environment_entries();

// A number of bytes: digits, then nothing or k, M, G or T (either case; powers of 1024). nullopt for anything
// else.
std::optional<std::size_t> parse_bytes(std::string_view text) noexcept;

}  // namespace onesum
