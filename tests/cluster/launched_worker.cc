#include "cluster/launched_worker.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <variant>

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "cluster/address_board.h"
#include "cluster/environment.h"
#include "cluster/pmix.h"
#include "support/expect_error.h"

namespace onesum::cluster {
namespace {

using namespace std::chrono_literals;

Clock::time_point soon() { return now() + 60s; }

std::string notice(int number) { return "unix:address-" + std::to_string(number); }

void exchange(AddressBoard& board, int rank, int number) {
  if (rank == 0) {
    board.publish(notice(number), soon());
  } else {
    ASSERT_EQ(board.lookup(soon()), notice(number));
  }
}

// Printed in one piece, so that workers' lines do not mix.
void say(const Invitation& invitation, const std::string& what) {
  std::fputs(("worker " + std::to_string(invitation.rank) + " of " + std::to_string(invitation.size) + " (" +
              invitation.source + ", local size " + std::to_string(invitation.local_size.value_or(-1)) +
              ") " + what + "\n")
                 .c_str(),
             stdout);
  std::fflush(stdout);
}

// All are on this machine, so the address need not be asked for; here it is.
void exchange_through_pmix() {
  const Invitation invitation = process_invitation();
  EXPECT_TRUE(std::holds_alternative<LocalSocket>(invitation.venue));
  for (int i = 0; i < 2; ++i) {
    const auto board = open_pmix_board();
    exchange(*board, invitation.rank, 2 * i);
    exchange(*board, invitation.rank, 2 * i + 1);
  }
  if (!::testing::Test::HasFailure()) say(invitation, "knows");
}

void exchange_through_pmi() {
  const Invitation invitation = process_invitation();
  {
    const auto board = open_address_board(invitation, soon());
    exchange(*board, invitation.rank, 0);
    exchange(*board, invitation.rank, 1);
  }
  if (!::testing::Test::HasFailure()) say(invitation, "knows");
}

// The MPI library of a program that uses it.
class Mpi {
 public:
  explicit Mpi(const char* library) : library_(::dlopen(library, RTLD_NOW | RTLD_GLOBAL)) {}
  explicit operator bool() const noexcept { return library_ != nullptr; }
  void init() const { EXPECT_EQ(function<int (*)(int*, char***)>("MPI_Init")(nullptr, nullptr), 0); }
  void finalize() const { EXPECT_EQ(function<int (*)()>("MPI_Finalize")(), 0); }

 private:
  template <class F>
  F function(const char* name) const {
    return reinterpret_cast<F>(::dlsym(library_, name));
  }
  void* library_;
};

void share_pmi_with_mpi() {
  const Invitation invitation = process_invitation();
  const Mpi mpi("libmpich.so.12");
  ASSERT_TRUE(mpi) << "no libmpich.so.12";
  testing::expect_invalid([&] { open_address_board(invitation, soon()); }, {"MPI_Init", "ONESUM_ADDRESS"});
  mpi.init();
  exchange(*open_address_board(invitation, soon()), invitation.rank, 0);
  exchange(*open_address_board(invitation, soon()), invitation.rank, 1);
  mpi.finalize();
  if (!::testing::Test::HasFailure()) say(invitation, "knows");
}

void share_pmix_with_mpi() {
  const Mpi mpi("libmpi.so.40");
  ASSERT_TRUE(mpi) << "no libmpi.so.40";
  testing::expect_invalid([] { open_pmix_board(); }, {"MPI_Init", "ONESUM_ADDRESS"});
  mpi.init();
  exchange_through_pmix();
  mpi.finalize();
}

// Worker 0 never publishes. The first that has given up ends all.
void wait_in_vain() {
  const Invitation invitation = process_invitation();
  const bool is_pmi = invitation.source == "MPICH (PMI)";
  const auto board = is_pmi ? open_address_board(invitation, soon()) : open_pmix_board();
  if (invitation.rank == 0) ::pause();
  testing::expect_error([&] { board->lookup(now() + 100ms); }, ErrorCode::kDeadlineExceeded,
                        {"other workers may not have come"});
  if (!::testing::Test::HasFailure()) say(invitation, "has given up");
  std::_Exit(1);
}

}  // namespace

int run_launched_worker(std::string_view task) {
  constexpr std::pair<std::string_view, void (*)()> kTasks[] = {
      {"exchange_through_pmix", exchange_through_pmix},
      {"exchange_through_pmi", exchange_through_pmi},
      {"share_pmix_with_mpi", share_pmix_with_mpi},
      {"share_pmi_with_mpi", share_pmi_with_mpi},
      {"wait_in_vain", wait_in_vain}};
  for (const auto& [name, run] : kTasks) {
    if (name != task) continue;
    run();
    return ::testing::Test::HasFailure() ? 1 : 0;
  }
  return 2;
}

}  // namespace onesum::cluster
