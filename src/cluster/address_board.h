// Where worker 0 makes its address known to the others.
//
// Worker 0 publishes, everyone else looks up, each once and in the same order if more than once; what a
// launcher carries is collective, so nobody returns before all have come or the deadline has passed. Throws
// deadline_exceeded then, and unavailable if the launcher does not answer as it should. Destroy
// a board as soon as all addresses are known: a launcher may end the whole job when a worker dies that is
// connected to it (with PMIx this is so to the end of the process). Threads: one at a time.
//
// A program that itself uses MPI shares the launcher with us. It must have called MPI_Init before
// (mpi_in_process.h): PMI has one connection, which the first finalize ends, and a board is then a guest of
// MPI's; libpmix counts its users, but cannot begin anew after the last has gone.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "cluster/invitation.h"

namespace onesum::cluster {

// The longest text that a board takes.
inline constexpr std::size_t kLongestNotice = 512;

class AddressBoard {
 public:
  AddressBoard() = default;
  virtual ~AddressBoard() = default;
  AddressBoard(const AddressBoard&) = delete;
  AddressBoard& operator=(const AddressBoard&) = delete;

  // `text` is 1 to kLongestNotice printable characters of ASCII without spaces.
  virtual void publish(std::string_view text, Clock::time_point deadline) = 0;
  // What worker 0 published. It is another process's word: parse_places (place.h) checks it.
  virtual std::string lookup(Clock::time_point deadline) = 0;
};

// The board of the invitation's meeting place. Where the address is fixed, publish does nothing and lookup
// returns it at once; with a single worker there is no board (nullptr).
std::unique_ptr<AddressBoard> open_address_board(const Invitation& invitation, Clock::time_point deadline);

// ---- for boards ----

// Throws invalid_argument for what publish does not take.
void check_notice(std::string_view text);

// A key for this process's next notice. All workers count alike; a key that is used twice may keep its first
// value.
std::string next_notice_key();

}  // namespace onesum::cluster
