// Ranks that reach each other by UCX on this machine, and tell each other their addresses in shared memory.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/transport_ranks.h"
#include "engine/ucx/ucx_transport.h"

namespace onesum::engine::testing {

class AddressBook;

class UcxMeeting : public Meeting {
 public:
  // `are_connected`: which ranks reach each other; all by default.
  explicit UcxMeeting(UcxOptions options, std::function<bool(int, int)> are_connected = {});
  ~UcxMeeting() override;
  std::unique_ptr<Transport> join(int rank) override { return join_ucx(rank); }
  std::unique_ptr<UcxTransport> join_ucx(int rank);

 private:
  UcxOptions options_;
  std::function<bool(int, int)> are_connected_;
  std::unique_ptr<AddressBook> addresses_;
};

// UCX cannot be used in a process that was forked from one which left a worker of UCX behind, as a transport
// does that quits in the middle of things. Throws where this may be so: such a test is to be run alone, as
// ctest does.
void require_no_ucx_before_fork();

// TCP over loopback.
UcxOptions loopback(int size, const Limits& limits);

}  // namespace onesum::engine::testing
