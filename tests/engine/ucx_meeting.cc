#include "engine/ucx_meeting.h"

#include <array>
#include <atomic>
#include <stdexcept>
#include <thread>
#include <utility>

#include <sys/mman.h>

namespace onesum::engine::testing {
namespace {

std::atomic<bool> has_used_ucx = false;

}  // namespace

class AddressBook {
 public:
  AddressBook()
      : memory_(mmap(nullptr, sizeof(Pages), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) {
    if (memory_ == MAP_FAILED) throw std::runtime_error("no memory for addresses");
    pages_ = new (memory_) Pages;
  }
  ~AddressBook() { munmap(memory_, sizeof(Pages)); }
  AddressBook(const AddressBook&) = delete;
  AddressBook& operator=(const AddressBook&) = delete;

  void write(int rank, const std::string& address) {
    Page& page = pages_->at(static_cast<std::size_t>(rank));
    address.copy(page.text.data(), page.text.size());
    page.bytes = address.size();
  }
  std::string read(int rank) const {
    const Page& page = pages_->at(static_cast<std::size_t>(rank));
    while (page.bytes == 0) std::this_thread::yield();
    return {page.text.data(), page.bytes};
  }

 private:
  struct Page {
    std::atomic<std::size_t> bytes{0};
    std::array<char, 2040> text{};
  };
  using Pages = std::array<Page, kMostRanks>;
  void* memory_;
  Pages* pages_ = nullptr;
};

UcxMeeting::UcxMeeting(UcxOptions options, std::function<bool(int, int)> are_connected)
    : options_(std::move(options)),
      are_connected_(std::move(are_connected)),
      addresses_(std::make_unique<AddressBook>()) {}

UcxMeeting::~UcxMeeting() = default;

std::unique_ptr<UcxTransport> UcxMeeting::join_ucx(int rank) {
  UcxOptions options = options_;
  options.rank = rank;
  has_used_ucx = true;
  auto transport = make_ucx_transport(options);
  addresses_->write(rank, transport->address());
  std::vector<std::string> all(static_cast<std::size_t>(options.size));
  for (int peer = 0; peer < options.size; ++peer) {
    const std::string address = addresses_->read(peer);
    if (!are_connected_ || are_connected_(rank, peer)) all[static_cast<std::size_t>(peer)] = address;
  }
  transport->connect(all);
  while (transport->unanswered()) transport->progress();
  return transport;
}

void require_no_ucx_before_fork() {
  if (has_used_ucx) throw std::runtime_error("UCX was used in this process before: run this test alone");
}

UcxOptions loopback(int size, const Limits& limits) {
  UcxOptions options;
  options.size = size;
  options.limits = limits;
  options.devices = "127.0.0.1";
  return options;
}

}  // namespace onesum::engine::testing
