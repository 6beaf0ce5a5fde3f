// A UCX worker with its context: the one through which all messages of a transport go.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <ucp/api/ucp.h>

#include "engine/ucx/doors.h"

namespace onesum::engine::ucx {

struct WorkerOptions {
  int peers = 1;
  std::string transports;
  std::string devices;  // names of interfaces and addresses (UcxOptions)
};

class Worker {
 public:
  // Throws unavailable with what UCX said and what it was asked for.
  explicit Worker(const WorkerOptions& options);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  ucp_worker_h get() const noexcept { return handles_->worker; }
  int event_fd() const noexcept { return event_fd_; }
  const std::string& address() const noexcept { return address_; }
  // The kinds of memory that its transports reach: "host", "cuda", …
  std::vector<std::string> memory_types() const;

  // All peers are connected: nobody else gets a connection from now on.
  void shut_doors() const noexcept { doors_.shut(); }

  // It stays for ever: it has requests that did not end.
  void abandon() noexcept;

 private:
  void make_context(const WorkerOptions& options);
  void make_worker();
  void read_address();
  void destroy() noexcept;

  struct Handles {
    ucp_context_h context = nullptr;
    ucp_worker_h worker = nullptr;
    Handles* next = nullptr;  // among abandoned ones
  };

  std::unique_ptr<Handles> handles_;  // null: abandoned
  int event_fd_ = -1;
  std::string address_;
  Doors doors_;
};

// In UCX's words, of a set of its memory types (bit i: type i), in their order.
std::vector<std::string> names_of_memory_types(std::uint64_t types);

// `devices` with numeric addresses replaced by the names of the interfaces that have them. Throws
// invalid_argument for an address that no interface of this machine has.
std::string device_names(const std::string& devices);

}  // namespace onesum::engine::ucx
