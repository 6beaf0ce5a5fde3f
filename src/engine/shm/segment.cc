#include "engine/shm/segment.h"

#include <algorithm>
#include <cerrno>
#include <new>
#include <string>
#include <system_error>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <onesum/error.h>

namespace onesum::engine::shm {

// Pages of a file, until nobody needs them.
class Mapping {
 public:
  Mapping(std::byte* begin, std::size_t bytes) noexcept : begin_(begin), bytes_(bytes) {}
  ~Mapping() { munmap(begin_, bytes_); }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  std::byte* at(std::size_t offset) const noexcept { return begin_ + offset; }

 private:
  std::byte* begin_;
  std::size_t bytes_;
};

namespace {

constexpr std::uint64_t kMagic = 0x31'6d'75'73'65'6e'6f'00;  // "\0onesum1"
constexpr std::uint32_t kVersion = 4;
constexpr std::size_t kPage = 4096;
constexpr std::size_t kMostBytes = std::size_t{1} << 44;
constexpr int kSizeSeals = F_SEAL_SHRINK | F_SEAL_GROW;
constexpr int kAllSeals = kSizeSeals | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL;

struct Header {
  std::uint64_t magic = kMagic;
  std::uint32_t version = kVersion;
  std::int32_t rank = 0;
  std::int32_t size = 0;
  std::uint32_t phases = 0;
  std::uint32_t messages = 0;
  std::uint32_t reserved = 0;
  std::uint64_t copy_bytes = 0;
  std::uint64_t copy_room = 0;
  std::uint64_t common_bytes = 0;
  std::uint64_t segment_bytes = 0;
};

constexpr std::size_t kHeaderAt = 0;
constexpr std::size_t kNotesAt = kPage;
constexpr std::size_t kCountersAt = kPage + kNotesBytes;
constexpr std::size_t kLinesAt = kCountersAt + sizeof(Counters);
static_assert(sizeof(Header) <= kNotesAt && kLinesAt % alignof(Line) == 0);
static_assert(sizeof(Line) == 64 && kMessageAlignment % alignof(Line) == 0);
// Atomics with locks beside them would work in one process only.
static_assert(std::atomic<std::uint64_t>::is_always_lock_free && std::atomic<Sleep>::is_always_lock_free);

std::size_t rounded_up(std::size_t bytes, std::size_t unit) { return (bytes + unit - 1) / unit * unit; }

Header header_of(int rank, const Layout& layout) {
  Header header;
  header.rank = rank;
  header.size = layout.size();
  header.phases = layout.limits().phases;
  header.messages = layout.limits().messages;
  header.copy_bytes = layout.limits().bytes;
  header.copy_room = layout.limits().room;
  header.common_bytes = layout.limits().common_bytes;
  header.segment_bytes = layout.bytes();
  return header;
}

std::string in_words(int size, const Limits& limits) {
  return std::to_string(size) + " ranks, " + std::to_string(limits.phases) + " phases of " +
         std::to_string(limits.messages) + " messages and " + std::to_string(limits.bytes) + " bytes, room " +
         std::to_string(limits.room) + ", in common " + std::to_string(limits.common_bytes);
}

std::string system_error() { return std::system_category().message(errno); }

[[noreturn]] void fail_to_make(const std::string& doing, std::size_t bytes) {
  throw Error(ErrorCode::kResourceExhausted, "cannot make " + std::to_string(bytes) +
                                                 " bytes of shared memory: " + doing + ": " + system_error());
}

Fd make_file(std::size_t bytes) {
  Fd file(memfd_create("onesum", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file) fail_to_make("memfd_create", bytes);
  if (ftruncate(file.get(), static_cast<off_t>(bytes)) != 0) fail_to_make("ftruncate", bytes);
  if (fcntl(file.get(), F_ADD_SEALS, kSizeSeals) != 0) fail_to_make("sealing the size", bytes);
  return file;
}

// Null where the system refuses.
std::shared_ptr<Mapping> map(int descriptor, std::size_t bytes, int protection) {
  void* begin = mmap(nullptr, bytes, protection, MAP_SHARED, descriptor, 0);
  if (begin == MAP_FAILED) return nullptr;
  return std::make_shared<Mapping>(static_cast<std::byte*>(begin), bytes);
}

[[noreturn]] void refuse(int rank, const std::string& why) {
  throw Error(ErrorCode::kAborted,
              "the shared memory that rank " + std::to_string(rank) + " sent is refused: " + why);
}

// Seals first: once they are seen, the size cannot change any more.
void check_file(int descriptor, int rank, std::size_t bytes) {
  const int seals = fcntl(descriptor, F_GET_SEALS);
  if (seals < 0) refuse(rank, "it is no memory file: " + system_error());
  if ((seals & kAllSeals) != kAllSeals)
    refuse(rank, "its seals are " + std::to_string(seals) + ", expected " + std::to_string(kAllSeals));
  struct stat file{};
  if (fstat(descriptor, &file) != 0) refuse(rank, "it has no size: " + system_error());
  if (static_cast<std::uint64_t>(file.st_size) != bytes)
    refuse(rank, "it has " + std::to_string(file.st_size) + " bytes, expected " + std::to_string(bytes));
}

void check_header(const Header& found, int rank, const Layout& layout) {
  const Header expected = header_of(rank, layout);
  if (found.magic != expected.magic) refuse(rank, "it is not a segment of onesum");
  if (found.version != expected.version)
    refuse(rank, "its layout has version " + std::to_string(found.version) + ", expected " +
                     std::to_string(expected.version));
  if (found.rank != expected.rank) refuse(rank, "it belongs to rank " + std::to_string(found.rank));
  const Limits limits{.bytes = static_cast<std::size_t>(found.copy_bytes),
                      .messages = found.messages,
                      .phases = found.phases,
                      .room = static_cast<std::size_t>(found.copy_room),
                      .common_bytes = static_cast<std::size_t>(found.common_bytes)};
  if (found.size != layout.size() || limits != layout.limits() || found.segment_bytes != layout.bytes())
    refuse(rank, "it is made for " + in_words(found.size, limits) + ", expected " +
                     in_words(layout.size(), layout.limits()));
}

// Returns the layout: a rank that it does not have is refused before anything is made.
Layout checked(const Layout& layout, int rank) {
  if (rank < 0 || rank >= layout.size())
    throw Error(ErrorCode::kInvalidArgument, "rank " + std::to_string(rank) + " has no shared memory among " +
                                                 std::to_string(layout.size()) + " ranks");
  return layout;
}

template <class T>
T* object_at(const Mapping& mapping, std::size_t offset) noexcept {
  return std::launder(reinterpret_cast<T*>(mapping.at(offset)));
}

}  // namespace

Layout::Layout(int size, const Limits& limits) : size_(size), limits_(limits) {
  const bool is_meant =
      size >= 1 && limits.phases >= 1 && limits.messages >= 1 && limits.bytes >= kMessageHeader;
  if (!is_meant || std::max({limits.bytes, limits.room, limits.common_bytes}) > kMostBytes)
    throw Error(ErrorCode::kInvalidArgument, "no shared memory can be made for " + in_words(size, limits));
  copy_stride_ = rounded_up(std::max(limits.bytes, limits.room), kPage);
  common_stride_ = rounded_up(std::max({limits.bytes, limits.room, limits.common_bytes}), kPage);
  const auto copies = static_cast<std::size_t>(size) * limits.phases;
  if (copies > kMostBytes / (limits.messages * sizeof(Line) + common_stride_))
    throw Error(ErrorCode::kInvalidArgument, "too much shared memory: " + in_words(size, limits));
  copies_at_ = rounded_up(kLinesAt + limits.messages * line_stride(), kPage);
  bytes_ = common_copy(limits.phases);
}

std::size_t Layout::line_stride() const noexcept {
  return static_cast<std::size_t>(size_) * limits_.phases * sizeof(Line);
}

std::size_t Layout::line(int peer, unsigned phase, std::uint32_t number) const noexcept {
  return kLinesAt + number * line_stride() +
         (static_cast<std::size_t>(phase) * static_cast<std::size_t>(size_) +
          static_cast<std::size_t>(peer)) *
             sizeof(Line);
}

std::size_t Layout::copy(int peer, unsigned phase) const noexcept {
  return copies_at_ + (static_cast<std::size_t>(peer) * limits_.phases + phase) * copy_stride_;
}

std::size_t Layout::common_copy(unsigned phase) const noexcept {
  return copy(size_, 0) + phase * common_stride_;
}

Segment::Segment(int rank, const Layout& layout)
    : rank_(rank),
      layout_(checked(layout, rank)),
      descriptor_(make_file(layout.bytes())),
      mapping_(map(descriptor_.get(), layout.bytes(), PROT_READ | PROT_WRITE)) {
  if (mapping_ == nullptr) fail_to_make("mmap", layout.bytes());
  // Lines need no beginning of their lives: a new file holds zeros, which are theirs, and touching them all
  // would take all their pages.
  new (mapping_->at(kHeaderAt)) Header(header_of(rank, layout));
  new (mapping_->at(kCountersAt)) Counters;
  if (fcntl(descriptor_.get(), F_ADD_SEALS, kAllSeals) != 0) fail_to_make("sealing", layout.bytes());
}

Counters& Segment::counters() const noexcept { return *object_at<Counters>(*mapping_, kCountersAt); }
std::span<std::byte> Segment::notes() const noexcept { return {mapping_->at(kNotesAt), kNotesBytes}; }
Line* Segment::line(int peer, unsigned phase, std::uint32_t number) const noexcept {
  return object_at<Line>(*mapping_, layout_.line(peer, phase, number));
}
std::byte* Segment::copy(int peer, unsigned phase) const noexcept {
  return mapping_->at(layout_.copy(peer, phase));
}
std::byte* Segment::common_copy(unsigned phase) const noexcept {
  return mapping_->at(layout_.common_copy(phase));
}

PeerSegment::PeerSegment(int descriptor, int rank, const Layout& layout)
    : rank_(rank), layout_(checked(layout, rank)) {
  check_file(descriptor, rank, layout.bytes());
  mapping_ = map(descriptor, layout.bytes(), PROT_READ);
  if (mapping_ == nullptr) refuse(rank, "it cannot be mapped: " + system_error());
  check_header(*object_at<const Header>(*mapping_, kHeaderAt), rank, layout);
}

PeerSegment::PeerSegment(const Segment& segment)
    : rank_(segment.rank_), layout_(segment.layout_), mapping_(segment.mapping_) {}

const Counters& PeerSegment::counters() const noexcept {
  return *object_at<const Counters>(*mapping_, kCountersAt);
}
std::span<const std::byte> PeerSegment::notes() const noexcept {
  return {mapping_->at(kNotesAt), kNotesBytes};
}
const Line* PeerSegment::line(int peer, unsigned phase, std::uint32_t number) const noexcept {
  return object_at<const Line>(*mapping_, layout_.line(peer, phase, number));
}
const std::byte* PeerSegment::copy(int peer, unsigned phase) const noexcept {
  return mapping_->at(layout_.copy(peer, phase));
}
const std::byte* PeerSegment::common_copy(unsigned phase) const noexcept {
  return mapping_->at(layout_.common_copy(phase));
}

}  // namespace onesum::engine::shm
