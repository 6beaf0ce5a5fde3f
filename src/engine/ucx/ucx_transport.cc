#include "engine/ucx/ucx_transport.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <onesum/error.h>

#include "base/clock.h"
#include "engine/boxes.h"
#include "engine/checksum.h"
#include "engine/ucx/peer.h"
#include "engine/ucx/wire.h"
#include "engine/ucx/worker.h"

namespace onesum::engine {
namespace {

using ucx::Copy;
using ucx::Header;
using ucx::Peer;
using ucx::Receive;

// A message as UCX takes it.
struct Content {
  explicit Content(std::span<std::byte> memory = {}) : buffer(memory.data()), count(memory.size()) {}
  explicit Content(ucx::Parts& parts)
      : buffer(parts.data()), count(parts.size()), datatype(ucp_dt_make_iov()) {}

  void* buffer;
  std::size_t count;
  ucp_datatype_t datatype = ucp_dt_make_contig(1);
};

void fill(ucx::Parts& parts, std::byte* header, const Place& place, std::span<const Stretch> payload) {
  std::size_t bytes = 0;
  parts.assign({{header, kMessageHeader}});
  for (const Stretch& stretch : payload) {
    parts.push_back({stretch.data(), stretch.size()});
    bytes += stretch.size();
  }
  if (bytes == place.bytes) return;
  throw Error(ErrorCode::kInternal, "UCX transport: " + std::to_string(bytes) +
                                        " bytes lent for a message of " + std::to_string(place.bytes));
}

// Of a header, whatever its own checksum is, and the payload of `header.bytes` behind it.
std::uint32_t checksum_of(Header header, std::span<const ucp_dt_iov_t> payload) noexcept {
  header.checksum = 0;
  Checksum checksum;
  checksum.add(std::as_bytes(std::span(&header, 1)));
  std::size_t left = header.bytes;
  for (const ucp_dt_iov_t& stretch : payload) {
    const std::size_t bytes = std::min(left, stretch.length);
    checksum.add({static_cast<const std::byte*>(stretch.buffer), bytes});
    left -= bytes;
  }
  return checksum.value();
}

constexpr std::chrono::milliseconds kPatience{900};  // of quit()
constexpr std::chrono::milliseconds kPatienceWithReceives{5};

UcxOptions checked(const UcxOptions& options) {
  const auto require = [](bool holds, const std::string& what) {
    if (!holds) throw Error(ErrorCode::kInvalidArgument, "UCX transport: " + what);
  };
  const Limits& limits = options.limits;
  require(options.size >= 1 && options.size <= ucx::kMostRanks,
          std::to_string(options.size) + " ranks; expected 1 to " + std::to_string(ucx::kMostRanks));
  require(options.rank >= 0 && options.rank < options.size,
          "rank " + std::to_string(options.rank) + " of " + std::to_string(options.size));
  require(limits.messages <= ucx::kMostMessages, std::to_string(limits.messages) +
                                                     " messages in a beat; expected at most " +
                                                     std::to_string(ucx::kMostMessages));
  require(limits.phases >= 1 && limits.phases <= ucx::kMostPhases,
          std::to_string(limits.phases) + " copies of an outbox; expected 1 to " +
              std::to_string(ucx::kMostPhases));
  require(!options.transports.empty(), "no transports named; expected such as \"tcp\"");
  return options;
}

class Implementation final : public UcxTransport {
 public:
  explicit Implementation(const UcxOptions& options);
  ~Implementation() override;

  const std::string& address() const noexcept override { return worker_.address(); }
  void connect(std::span<const std::string> addresses) override;
  std::optional<int> unanswered() const noexcept override;
  std::optional<PeerFailure> failure() const override;
  std::vector<std::string> memory_types() const override { return worker_.memory_types(); }
  bool damage_next(int peer) noexcept override;

  const Limits& limits() const noexcept override { return options_.limits; }
  // Such as copy what they send by themselves, so that nothing reads or writes it but progress().
  NearBoxes near_boxes(int /*peer*/) const noexcept override {
    return {.lends = options_.transports == "tcp"};
  }
  std::byte* outbox(Box box, int peer, unsigned phase) noexcept override {
    return box == Box::kPair ? boxes_.outbox(peer, phase) : nullptr;
  }
  const std::byte* inbox(Box box, int peer, unsigned phase) noexcept override {
    return box == Box::kPair ? boxes_.inbox(peer, phase) : nullptr;
  }
  void begin(const Beat& beat, std::span<const Place> incoming) override;
  bool may_send(const Beat& beat, int peer) noexcept override;
  void send(const Beat& beat, const Place& place) override;
  void send_from(const Beat& beat, const Place& place, std::span<const Stretch> payload) override;
  bool is_taken(const Beat& beat) noexcept override;
  void receive_into(const Beat& beat, const Place& place, std::span<const Stretch> payload) override;
  Arrival arrival(const Beat& beat, const Place& place) override;
  void finish(const Beat& beat) override;
  bool is_flushed() noexcept override;
  bool progress() override;
  bool arm() override;
  void disarm() noexcept override {}
  int event_fd() const noexcept override { return worker_.event_fd(); }
  bool quit() noexcept override;

 private:
  unsigned phase_of(const Beat& beat) const noexcept {
    return static_cast<unsigned>(beat.number % options_.limits.phases);
  }
  void require_place(const Place& place) const;
  void open(int rank, const std::string& address);
  Receive& receive_of(const Beat& beat, const Place& place);
  void post_receive(const Beat& beat, const Place& place);
  Copy& write_header(const Beat& beat, const Place& place, std::span<const ucp_dt_iov_t> payload);
  void post_credit(Peer& peer);
  void send_credit(Peer& peer);
  void start(Receive& receive, const Content& content, ucx::Tag tag, ucx::Tag mask);
  void start(Copy& copy, Peer& peer, const Content& content, ucx::Tag tag);
  Arrival judge(const Beat& beat, const Place& place, const Receive& receive);
  void take_credits();
  void start_flush() noexcept;
  bool is_idle() const noexcept;
  bool has_closed() noexcept;
  void cancel_receives() noexcept;
  void cancel(const Receive& receive) noexcept;
  void close(Peer& peer) noexcept;

  // UCX calls these from inside of progress(), mostly; `data` is what the request was started with.
  static void on_received(void* request, ucs_status_t status, const ucp_tag_recv_info_t* info, void* data);
  static void on_sent(void* request, ucs_status_t status, void* data);
  static void on_flushed(void* request, ucs_status_t status, void* data);
  static void on_closed(void* request, ucs_status_t status, void* data);
  static void on_failure(void* data, ucp_ep_h endpoint, ucs_status_t status);

  UcxOptions options_;
  Boxes boxes_;
  std::vector<Peer> peers_;
  ucx::Worker worker_;          // after what its requests refer to
  std::uint64_t finished_ = 0;  // beats
  std::size_t receives_ = 0;    // under way, as are
  std::size_t sends_ = 0;       // and
  std::size_t closing_ = 0;     // connections, flushes
  std::uint64_t started_ = 0;   // sends so far
  std::uint64_t flushed_ = 0;   // of which these need no help any more
  std::uint64_t flushing_ = 0;  // up to here, if that is more
  const Peer* first_failed_ = nullptr;
  bool has_open_doors_ = false;   // peers are on their way
  bool is_clean_ = false;         // it was idle when it quit
  std::optional<bool> has_quit_;  // and what it returned
};

Implementation::Implementation(const UcxOptions& options)
    : options_(checked(options)),
      boxes_(options.size, options.limits),
      peers_(static_cast<std::size_t>(options.size)),
      worker_({options.size, options.transports, options.devices}) {
  for (Peer& peer : peers_) {
    peer.copies.resize(options_.limits.phases, Copy{&sends_});
    peer.flow = Credits(options_.limits.phases);
    peer.receives.resize(options_.limits.phases);
    peer.credits = {&sends_};
    peer.credit.receives = &receives_;
    peer.first_failed = &first_failed_;
  }
}

Implementation::~Implementation() {
  if (!quit()) boxes_.abandon();
  if (!is_clean_) worker_.abandon();
}

void Implementation::connect(std::span<const std::string> addresses) {
  if (addresses.size() != peers_.size()) {
    throw Error(ErrorCode::kInvalidArgument, "UCX transport: " + std::to_string(addresses.size()) +
                                                 " addresses for " + std::to_string(peers_.size()) +
                                                 " ranks");
  }
  for (int rank = 0; rank < options_.size; ++rank) {
    const std::string& address = addresses[static_cast<std::size_t>(rank)];
    if (rank != options_.rank && !address.empty()) open(rank, address);
  }
  has_open_doors_ = true;
}

void Implementation::open(int rank, const std::string& address) {
  Peer& peer = peers_[static_cast<std::size_t>(rank)];
  ucp_ep_params_t params{};
  params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                      UCP_EP_PARAM_FIELD_ERR_HANDLER;
  params.address = reinterpret_cast<const ucp_address_t*>(address.data());
  params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
  params.err_handler = {on_failure, &peer};
  const ucs_status_t status = ucp_ep_create(worker_.get(), &params, &peer.endpoint);
  if (status != UCS_OK) {
    peer.endpoint = nullptr;
    throw Error(ErrorCode::kUnavailable, "UCX: rank " + std::to_string(options_.rank) +
                                             " cannot reach rank " + std::to_string(rank) + " over " +
                                             options_.transports + ": " + ucs_status_string(status));
  }
  post_credit(peer);
  send_credit(peer);
}

std::optional<int> Implementation::unanswered() const noexcept {
  const auto found = std::ranges::find_if(peers_, [](const Peer& peer) {
    return peer.endpoint != nullptr && !(peer.is_heard && peer.credits.messages == 0);
  });
  if (found == peers_.end()) return std::nullopt;
  return static_cast<int>(found - peers_.begin());
}

std::optional<PeerFailure> Implementation::failure() const {
  if (first_failed_ == nullptr) return std::nullopt;
  return PeerFailure{static_cast<int>(first_failed_ - peers_.data()),
                     ucs_status_string(first_failed_->failure)};
}

bool Implementation::damage_next(int peer) noexcept {
  Peer& to = peers_[static_cast<std::size_t>(peer)];
  to.damages_next = to.endpoint != nullptr;
  return to.damages_next;
}

// A place that is wrong would let UCX write anywhere.
void Implementation::require_place(const Place& place) const {
  const Limits& limits = options_.limits;
  const bool is_right = place.box == Box::kPair && place.peer >= 0 && place.peer < options_.size &&
                        place.number < limits.messages && place.offset >= kMessageHeader &&
                        place.offset <= limits.bytes && place.bytes <= limits.bytes - place.offset;
  if (is_right) return;
  throw Error(ErrorCode::kInternal, "UCX transport: message " + std::to_string(place.number) + " of rank " +
                                        std::to_string(place.peer) + ", " + std::to_string(place.bytes) +
                                        " bytes at " + std::to_string(place.offset) + ", exceeds the limits");
}

void Implementation::begin(const Beat& beat, std::span<const Place> incoming) {
  for (const Place& place : incoming) {
    if (!place.is_lent) post_receive(beat, place);
  }
}

Receive& Implementation::receive_of(const Beat& beat, const Place& place) {
  std::deque<Receive>& receives = peers_[static_cast<std::size_t>(place.peer)].receives[phase_of(beat)];
  while (receives.size() <= place.number) receives.push_back({&receives_});
  return receives[place.number];
}

void Implementation::post_receive(const Beat& beat, const Place& place) {
  require_place(place);
  std::byte* memory = boxes_.inbox(place.peer, phase_of(beat)) + place.offset - kMessageHeader;
  start(receive_of(beat, place), Content(std::span(memory, kMessageHeader + place.bytes)),
        ucx::data_tag(options_.epoch, place.peer, beat.number, place.number), ucx::kExactly);
  peers_[static_cast<std::size_t>(place.peer)].flow.expect(beat.number);
}

void Implementation::receive_into(const Beat& beat, const Place& place, std::span<const Stretch> payload) {
  require_place(place);
  Receive& receive = receive_of(beat, place);
  fill(receive.parts, boxes_.inbox(place.peer, phase_of(beat)) + place.offset - kMessageHeader, place,
       payload);
  start(receive, Content(receive.parts), ucx::data_tag(options_.epoch, place.peer, beat.number, place.number),
        ucx::kExactly);
  peers_[static_cast<std::size_t>(place.peer)].flow.expect(beat.number);
}

// Always ends in the callback, because UCX 1.13 tells nothing of a message that it had already.
void Implementation::start(Receive& receive, const Content& content, ucx::Tag tag, ucx::Tag mask) {
  receive.status = UCS_INPROGRESS;
  receive.verdict = Arrival::kNotYet;
  ++receives_;
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_DATATYPE |
                       UCP_OP_ATTR_FIELD_MEMORY_TYPE | UCP_OP_ATTR_FLAG_NO_IMM_CMPL;
  param.datatype = content.datatype;
  param.cb.recv = on_received;
  param.user_data = &receive;
  param.memory_type = UCS_MEMORY_TYPE_HOST;
  const ucs_status_ptr_t request =
      ucp_tag_recv_nbx(worker_.get(), content.buffer, content.count, tag, mask, &param);
  if (UCS_PTR_IS_ERR(request)) {
    --receives_;
    throw Error(ErrorCode::kInternal,
                std::string("UCX cannot receive: ") + ucs_status_string(UCS_PTR_STATUS(request)));
  }
  if (receive.status == UCS_INPROGRESS) {
    receive.request = request;
  } else {
    ucp_request_free(request);
  }
}

void Implementation::on_received(void* request, ucs_status_t status, const ucp_tag_recv_info_t* info,
                                 void* data) {
  auto& receive = *static_cast<Receive*>(data);
  receive.status = status;
  if (status == UCS_OK) receive.info = *info;
  --*receive.receives;
  // Otherwise start() has not returned yet, and frees it.
  if (std::exchange(receive.request, nullptr) != nullptr) ucp_request_free(request);
}

bool Implementation::may_send(const Beat& beat, int peer) noexcept {
  const Peer& to = peers_[static_cast<std::size_t>(peer)];
  if (to.flow.is_used_in(beat.number)) return true;
  return to.copies[phase_of(beat)].messages == 0 && to.flow.is_free_for(beat.number);
}

void Implementation::send(const Beat& beat, const Place& place) {
  require_place(place);
  Peer& peer = peers_[static_cast<std::size_t>(place.peer)];
  std::byte* payload = boxes_.outbox(place.peer, phase_of(beat)) + place.offset;
  const ucp_dt_iov_t whole{payload, place.bytes};
  Copy& copy = write_header(beat, place, {&whole, 1});
  if (peer.damages_next && place.bytes != 0) {
    peer.damages_next = false;
    payload[place.bytes / 2] ^= std::byte{0x10};
  }
  start(copy, peer, Content(std::span(payload - kMessageHeader, kMessageHeader + place.bytes)),
        ucx::data_tag(options_.epoch, options_.rank, beat.number, place.number));
}

// A drill changes what is in the outbox, and nothing else.
void Implementation::send_from(const Beat& beat, const Place& place, std::span<const Stretch> payload) {
  require_place(place);
  Peer& peer = peers_[static_cast<std::size_t>(place.peer)];
  std::byte* box = boxes_.outbox(place.peer, phase_of(beat)) + place.offset;
  if (peer.damages_next && place.bytes != 0) {
    for (const Stretch& stretch : payload) box = std::ranges::copy(stretch, box).out;
    return send(beat, place);
  }
  std::deque<ucx::Parts>& all = peer.copies[phase_of(beat)].parts;
  while (all.size() <= place.number) all.emplace_back();
  ucx::Parts& parts = all[place.number];
  fill(parts, box - kMessageHeader, place, payload);
  Copy& copy = write_header(beat, place, std::span(parts).subspan(1));
  start(copy, peer, Content(parts), ucx::data_tag(options_.epoch, options_.rank, beat.number, place.number));
}

Copy& Implementation::write_header(const Beat& beat, const Place& place,
                                   std::span<const ucp_dt_iov_t> payload) {
  Header header{beat.number, beat.token, place.bytes, finished_};
  if (options_.checksums) header.checksum = checksum_of(header, payload);
  std::byte* box = boxes_.outbox(place.peer, phase_of(beat)) + place.offset;
  std::memcpy(box - kMessageHeader, &header, sizeof header);
  Peer& peer = peers_[static_cast<std::size_t>(place.peer)];
  peer.flow.note_sent(beat.number, finished_);
  return peer.copies[phase_of(beat)];
}

bool Implementation::is_taken(const Beat& beat) noexcept {
  return sends_ == 0 || std::ranges::all_of(peers_, [&](const Peer& peer) {
           return peer.copies[phase_of(beat)].messages == 0;
         });
}

// What cannot be sent is lost with its peer, which failure() tells.
void Implementation::start(Copy& copy, Peer& peer, const Content& content, ucx::Tag tag) {
  if (peer.endpoint == nullptr) return;
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_DATATYPE |
                       UCP_OP_ATTR_FIELD_MEMORY_TYPE;
  param.datatype = content.datatype;
  param.cb.send = on_sent;
  param.user_data = &copy;
  param.memory_type = UCS_MEMORY_TYPE_HOST;
  const ucs_status_ptr_t request =
      ucp_tag_send_nbx(peer.endpoint, content.buffer, content.count, tag, &param);
  ++started_;
  if (UCS_PTR_IS_PTR(request)) {
    ++copy.messages;
    ++sends_;
  } else if (UCS_PTR_IS_ERR(request)) {
    on_failure(&peer, peer.endpoint, UCS_PTR_STATUS(request));
  }
}

void Implementation::on_sent(void* request, ucs_status_t /*status*/, void* data) {
  auto& copy = *static_cast<Copy*>(data);
  --copy.messages;
  --*copy.sends;
  ucp_request_free(request);
}

Arrival Implementation::arrival(const Beat& beat, const Place& place) {
  Receive& receive = peers_[static_cast<std::size_t>(place.peer)].receives[phase_of(beat)][place.number];
  if (receive.verdict == Arrival::kNotYet && receive.status != UCS_INPROGRESS) {
    receive.verdict = judge(beat, place, receive);
  }
  return receive.verdict;
}

Arrival Implementation::judge(const Beat& beat, const Place& place, const Receive& receive) {
  // Longer than its place: nobody who is in the same call sends such a message.
  if (receive.status == UCS_ERR_MESSAGE_TRUNCATED) return Arrival::kMismatch;
  if (receive.status != UCS_OK) return Arrival::kNotYet;  // it was given up
  if (receive.info.length < kMessageHeader) return Arrival::kCorrupt;
  std::byte* payload = boxes_.inbox(place.peer, phase_of(beat)) + place.offset;
  Header header;
  std::memcpy(&header, payload - kMessageHeader, sizeof header);
  if (header.bytes != receive.info.length - kMessageHeader) return Arrival::kCorrupt;
  if (options_.checksums) {
    const ucp_dt_iov_t whole{payload, header.bytes};
    const std::span<const ucp_dt_iov_t> stretches =
        place.is_lent ? std::span(receive.parts).subspan(1) : std::span(&whole, 1);
    if (checksum_of(header, stretches) != header.checksum) return Arrival::kCorrupt;
  }
  if (header.beat != beat.number) return Arrival::kCorrupt;
  if (header.token != beat.token) return Arrival::kMismatch;
  if (header.bytes != place.bytes) return Arrival::kCorrupt;
  peers_[static_cast<std::size_t>(place.peer)].flow.hear(std::max(header.finished, beat.settled));
  return Arrival::kHere;
}

void Implementation::finish(const Beat& beat) {
  finished_ = beat.number + 1;
  for (Peer& peer : peers_) {
    if (peer.flow.must_tell_after(beat.number)) send_credit(peer);
  }
}

void Implementation::send_credit(Peer& peer) {
  peer.flow.note_told(finished_);
  start(peer.credits, peer, Content(), ucx::credit_tag(options_.epoch, options_.rank, finished_));
}

void Implementation::post_credit(Peer& peer) {
  const int rank = static_cast<int>(&peer - peers_.data());
  start(peer.credit, Content(), ucx::credit_tag(options_.epoch, rank, 0), ucx::kAnyCount);
}

void Implementation::take_credits() {
  for (Peer& peer : peers_) {
    while (peer.endpoint != nullptr && peer.credit.status == UCS_OK) {
      peer.is_heard = true;
      peer.flow.hear(ucx::finished_of(peer.credit.info.sender_tag, peer.flow.heard()));
      post_credit(peer);
    }
  }
}

bool Implementation::progress() {
  if (ucp_worker_progress(worker_.get()) == 0) return false;
  take_credits();
  if (has_open_doors_ && !unanswered()) {
    has_open_doors_ = false;
    worker_.shut_doors();
  }
  return true;
}

bool Implementation::is_flushed() noexcept {
  if (sends_ != 0) return false;
  if (flushed_ != started_ && flushing_ <= flushed_) start_flush();
  return flushed_ == started_;
}

// A send that is complete may have left its message with a transport that still has to be driven.
void Implementation::start_flush() noexcept {
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  param.cb.send = on_flushed;
  param.user_data = this;
  flushing_ = started_;
  const ucs_status_ptr_t request = ucp_worker_flush_nbx(worker_.get(), &param);
  if (UCS_PTR_IS_PTR(request)) {
    ++closing_;
  } else {  // also if it failed: there is nobody left to help
    flushed_ = flushing_;
  }
}

void Implementation::on_flushed(void* request, ucs_status_t /*status*/, void* data) {
  auto& self = *static_cast<Implementation*>(data);
  self.flushed_ = self.flushing_;
  --self.closing_;
  ucp_request_free(request);
}

bool Implementation::arm() {
  const ucs_status_t status = ucp_worker_arm(worker_.get());
  if (status == UCS_OK) return true;
  if (status == UCS_ERR_BUSY) return false;
  throw Error(ErrorCode::kUnavailable,
              std::string("UCX cannot wait for the network: ") + ucs_status_string(status));
}

void Implementation::on_failure(void* data, ucp_ep_h /*endpoint*/, ucs_status_t status) {
  auto& peer = *static_cast<Peer*>(data);
  if (peer.failure == UCS_OK) peer.failure = status;
  if (*peer.first_failed == nullptr) *peer.first_failed = &peer;
}

// Whether nothing is under way but the wait for credits, in a transport that works.
bool Implementation::is_idle() const noexcept {
  const auto waiting =
      std::ranges::count_if(peers_, [](const Peer& peer) { return peer.credit.request != nullptr; });
  return first_failed_ == nullptr && !unanswered() && sends_ + closing_ == 0 &&
         receives_ == static_cast<std::size_t>(waiting);
}

// UCX 1.13 ends the process if a worker is destroyed that still has to answer a peer's attempt to connect,
// and peers make such attempts when they get a message through a connection that was closed. Therefore an
// idle worker is destroyed as it is, without closing and without progress, and any other one is left behind.
bool Implementation::quit() noexcept {
  if (has_quit_) return *has_quit_;
  is_clean_ = is_idle();
  cancel_receives();
  is_clean_ = is_clean_ && receives_ == 0;
  has_quit_ = is_clean_ || has_closed();
  return *has_quit_;
}

// A receive that found its message cannot be cancelled. The network writes to it directly until its
// connection is closed, by which it ends; or else progress copies its message piece by piece, and then it
// never ends, but nothing is written any more when progress ends.
bool Implementation::has_closed() noexcept {
  for (Peer& peer : peers_) close(peer);
  const auto progress_while = [&](auto condition, std::chrono::milliseconds patience) {
    const auto deadline = now() + patience;
    while (condition() && now() < deadline) {
      if (ucp_worker_progress(worker_.get()) == 0) std::this_thread::yield();
    }
  };
  progress_while([&] { return sends_ + closing_ != 0; }, kPatience);
  progress_while([&] { return receives_ != 0; }, kPatienceWithReceives);
  return sends_ + closing_ == 0;
}

void Implementation::cancel_receives() noexcept {
  for (Peer& peer : peers_) {
    cancel(peer.credit);
    for (const std::deque<Receive>& receives : peer.receives) {
      for (const Receive& receive : receives) cancel(receive);
    }
  }
}

void Implementation::cancel(const Receive& receive) noexcept {
  if (receive.request != nullptr) ucp_request_cancel(worker_.get(), receive.request);
}

void Implementation::close(Peer& peer) noexcept {
  if (peer.endpoint == nullptr) return;
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS;
  param.flags = UCP_EP_CLOSE_FLAG_FORCE;
  param.cb.send = on_closed;
  param.user_data = &closing_;
  const ucs_status_ptr_t request = ucp_ep_close_nbx(std::exchange(peer.endpoint, nullptr), &param);
  if (UCS_PTR_IS_PTR(request)) ++closing_;
}

void Implementation::on_closed(void* request, ucs_status_t /*status*/, void* data) {
  --*static_cast<std::size_t*>(data);
  ucp_request_free(request);
}

}  // namespace

bool has_ucx() noexcept { return true; }

std::string ucx_transports() {
  std::error_code none;
  return std::filesystem::is_empty("/sys/class/infiniband", none) || none ? "tcp" : "rc,ud,tcp";
}

UcxReport report_ucx() {
  const ucx::Worker asked({1, "all", {}});
  return {ucp_get_version_string(), asked.memory_types()};
}

std::unique_ptr<UcxTransport> make_ucx_transport(const UcxOptions& options) {
  return std::make_unique<Implementation>(options);
}

}  // namespace onesum::engine
