// What a transport knows of one peer, and of the requests that UCX has under way for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include <ucp/api/ucp.h>

#include "engine/credits.h"
#include "engine/transport.h"

namespace onesum::engine::ucx {

// A message in parts: first its header, then the stretches of its payload.
using Parts = std::vector<ucp_dt_iov_t>;

// A receive of one message; UCX holds its address while it is under way.
struct Receive {
  std::size_t* receives = nullptr;  // the transport's count of receives under way
  void* request = nullptr;          // while it is under way
  ucs_status_t status = UCS_INPROGRESS;
  ucp_tag_recv_info_t info{};          // if the status is UCS_OK
  Arrival verdict = Arrival::kNotYet;  // once somebody asked for it
  Parts parts{};                       // of a message that is lent
};

// One copy of the outbox to a peer; UCX holds its address while messages are under way.
struct Copy {
  std::size_t* sends = nullptr;  // the transport's count of sends under way
  std::size_t messages = 0;      // of these from this copy
  std::deque<Parts> parts{};     // of messages that are lent, by number; addresses stay while they grow
};

struct Peer {
  const Peer** first_failed = nullptr;  // the transport's
  ucp_ep_h endpoint = nullptr;          // null: not reached through this transport, or closed
  Credits flow{1};
  bool is_heard = false;                      // a credit came from it
  bool damages_next = false;                  // a drill
  ucs_status_t failure = UCS_OK;              // why its connection broke
  std::vector<Copy> copies;                   // of the outbox
  Copy credits;                               // which lie nowhere
  std::vector<std::deque<Receive>> receives;  // by phase and number; addresses stay while they grow
  Receive credit;
};

}  // namespace onesum::engine::ucx
