#include "cluster/address_board.h"

#include <algorithm>
#include <atomic>
#include <utility>
#include <variant>

#include <onesum/error.h>

#include "base/text.h"
#include "cluster/mpi_in_process.h"
#include "cluster/pmi.h"
#include "cluster/pmix.h"

namespace onesum::cluster {
namespace {

class FixedBoard final : public AddressBoard {
 public:
  explicit FixedBoard(std::string address) : address_(std::move(address)) {}
  void publish(std::string_view text, Clock::time_point) override { check_notice(text); }
  std::string lookup(Clock::time_point) override { return address_; }

 private:
  std::string address_;
};

struct Open {
  const Invitation& invitation;
  Clock::time_point deadline;

  std::unique_ptr<AddressBoard> operator()(const Nowhere&) const { return nullptr; }
  std::unique_ptr<AddressBoard> operator()(const LocalSocket& socket) const {
    return std::make_unique<FixedBoard>("unix:" + socket.name);
  }
  std::unique_ptr<AddressBoard> operator()(const HostPort& address) const {
    return std::make_unique<FixedBoard>(to_string(address));
  }
  std::unique_ptr<AddressBoard> operator()(const AskPmix&) const { return open_pmix_board(); }
  std::unique_ptr<AddressBoard> operator()(const AskPmi& pmi) const {
    return open_pmi_board(pmi.fd, find_mpi(), deadline);
  }
};

}  // namespace

std::unique_ptr<AddressBoard> open_address_board(const Invitation& invitation, Clock::time_point deadline) {
  return std::visit(Open{invitation, deadline}, invitation.venue);
}

void check_notice(std::string_view text) {
  const auto is_printable = [](char c) { return c > 0x20 && c < 0x7f; };
  if (text.empty() || text.size() > kLongestNotice || !std::ranges::all_of(text, is_printable)) {
    throw Error(ErrorCode::kInvalidArgument,
                "address " + quoted(text) + " cannot be published; expected 1 to " +
                    std::to_string(kLongestNotice) + " printable characters without spaces");
  }
}

std::string next_notice_key() {
  static std::atomic<unsigned> notices = 0;  // relaxed: a mere counter
  return "onesum-address-" + std::to_string(notices.fetch_add(1, std::memory_order_relaxed));
}

}  // namespace onesum::cluster
