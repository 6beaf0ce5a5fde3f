#include <array>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/shm_meeting.h"
#include "engine/transport_conformance.h"
#include "support/expect_error.h"

namespace onesum::engine::testing {
namespace {

using onesum::testing::expect_error;
using onesum::testing::expect_invalid;

INSTANTIATE_TEST_SUITE_P(Shm, TransportConformance,
                         ::testing::Values(over_shm(RanksAre::kThreads),
                                           over_shm(RanksAre::kThreads, PeersMap::kNothing),
                                           over_shm(RanksAre::kProcesses)),
                         [](const auto& tested) { return tested.param.name; });

const shm::Layout kLayout(3, kSmallLimits);
constexpr int kSizeSeals = F_SEAL_SHRINK | F_SEAL_GROW;
constexpr int kAllSeals = kSizeSeals | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL;

void expect_refused(int descriptor, std::initializer_list<std::string_view> why) {
  const auto open = [&] { const shm::PeerSegment opened(descriptor, 1, kLayout); };
  expect_error(open, ErrorCode::kAborted, {"rank 1"});
  expect_error(open, ErrorCode::kAborted, why);
}

// A memory file that begins with a true header, of which four bytes at `changed_at` are 77.
Fd forge(std::size_t bytes, int seals, std::size_t changed_at = ~std::size_t{0}) {
  std::array<char, 128> header{};
  const shm::Segment segment(1, kLayout);
  EXPECT_EQ(pread(segment.descriptor(), header.data(), header.size(), 0), 128);
  const std::uint32_t changed = 77;
  if (changed_at < header.size()) std::memcpy(header.data() + changed_at, &changed, sizeof changed);
  Fd file(memfd_create("forged", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  EXPECT_EQ(pwrite(file.get(), header.data(), header.size(), 0), 128);
  EXPECT_EQ(ftruncate(file.get(), static_cast<off_t>(bytes)), 0);
  EXPECT_EQ(fcntl(file.get(), F_ADD_SEALS, seals), 0);
  return file;
}

TEST(ShmSegment, DescriptorsOfStrangersAreRefused) {
  const Fd zero(open("/dev/zero", O_RDONLY | O_CLOEXEC));
  expect_refused(-1, {"no memory file"});
  expect_refused(zero.get(), {"no memory file"});
  FILE* file = std::tmpfile();
  ASSERT_EQ(ftruncate(fileno(file), static_cast<off_t>(kLayout.bytes())), 0);
  expect_refused(fileno(file), {"refused"});
  std::fclose(file);
  expect_refused(forge(kLayout.bytes(), 0).get(), {"its seals are 0, expected 23"});
  expect_refused(forge(kLayout.bytes(), kSizeSeals).get(), {"its seals are 6, expected 23"});
  expect_refused(forge(4096, kAllSeals).get(),
                 {"it has 4096 bytes, expected " + std::to_string(kLayout.bytes())});
  expect_refused(forge(kLayout.bytes() + 1, kAllSeals).get(),
                 {std::to_string(kLayout.bytes() + 1) + " bytes"});
  EXPECT_NO_THROW(shm::PeerSegment(forge(kLayout.bytes(), kAllSeals).get(), 1, kLayout));
}

TEST(ShmSegment, SegmentsOfOthersAreRefusedByName) {
  expect_refused(forge(kLayout.bytes(), kAllSeals, 0).get(), {"not a segment of onesum"});
  expect_refused(forge(kLayout.bytes(), kAllSeals, 8).get(), {"layout has version 77, expected 4"});
  expect_refused(forge(kLayout.bytes(), kAllSeals, 12).get(), {"belongs to rank 77"});
  expect_refused(forge(kLayout.bytes(), kAllSeals, 16).get(), {"made for 77 ranks", "expected 3 ranks"});
  expect_refused(forge(kLayout.bytes(), kAllSeals, 20).get(), {"77 phases", "expected 3 ranks, 2 phases"});
  expect_refused(forge(kLayout.bytes(), kAllSeals, 24).get(), {"77 messages", "of 6 messages"});
  expect_refused(forge(kLayout.bytes(), kAllSeals, 32).get(), {"77 bytes", "8192 bytes"});
  expect_refused(forge(kLayout.bytes(), kAllSeals, 40).get(), {"8192 bytes, room 77", "8192 bytes, room 0"});
  const shm::Segment another_rank(2, kLayout);
  expect_refused(another_rank.descriptor(), {"belongs to rank 2"});
  const shm::Segment another_size(1, shm::Layout(4, kSmallLimits));
  expect_refused(another_size.descriptor(), {"bytes, expected"});
}

TEST(ShmSegment, MeaninglessLimitsAreRefused) {
  expect_invalid([] { shm::Layout(0, kSmallLimits); }, {"0 ranks"});
  expect_invalid([] { const shm::Segment made(3, kLayout); }, {"rank 3", "3 ranks"});
  expect_invalid([] { const shm::PeerSegment made(0, -1, kLayout); }, {"rank -1", "3 ranks"});
  expect_invalid([] { shm::Layout(2, {.bytes = 63, .messages = 1, .phases = 2}); }, {"63 bytes"});
  expect_invalid([] { shm::Layout(2, {.bytes = 64, .messages = 0, .phases = 2}); }, {"0 messages"});
  expect_invalid([] { shm::Layout(2, {.bytes = 64, .messages = 1, .phases = 0}); }, {"0 phases"});
  expect_invalid([] { shm::Layout(2, {.bytes = ~std::size_t{0}, .messages = 1, .phases = 2}); }, {"bytes"});
  expect_invalid([] { shm::Layout(1 << 20, {.bytes = std::size_t{1} << 40, .messages = 1, .phases = 2}); },
                 {"too much shared memory"});
}

TEST(ShmSegment, OnlyItsOwnerWrites) {
  const shm::Segment own(1, kLayout);
  const shm::PeerSegment seen(own.descriptor(), 1, kLayout);
  own.notes()[17] = std::byte{42};
  EXPECT_EQ(seen.notes()[17], std::byte{42});
  EXPECT_EQ(seen.notes().size(), shm::kNotesBytes);

  const int descriptor = own.descriptor();
  EXPECT_EQ(mmap(nullptr, kLayout.bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0), MAP_FAILED);
  EXPECT_NE(mprotect(const_cast<std::byte*>(seen.notes().data()), 4096, PROT_READ | PROT_WRITE), 0);
  EXPECT_LT(pwrite(descriptor, "x", 1, 0), 0);
  EXPECT_NE(ftruncate(descriptor, 0), 0);
  EXPECT_NE(ftruncate(descriptor, static_cast<off_t>(2 * kLayout.bytes())), 0);
  const std::string again = "/proc/self/fd/" + std::to_string(descriptor);
  const Fd reopened(open(again.c_str(), O_RDWR | O_CLOEXEC));
  EXPECT_EQ(mmap(nullptr, kLayout.bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, reopened.get(), 0),
            MAP_FAILED);
}

void send_descriptor(int socket, int descriptor) {
  char byte = 0;
  iovec data{&byte, 1};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
  if (sendmsg(socket, &message, 0) != 1) _exit(1);
}

Fd receive_descriptor(int socket) {
  char byte = 0;
  iovec data{&byte, 1};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  int descriptor = -1;
  if (recvmsg(socket, &message, MSG_CMSG_CLOEXEC) == 1 && CMSG_FIRSTHDR(&message) != nullptr)
    std::memcpy(&descriptor, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof descriptor);
  return Fd(descriptor);
}

[[noreturn]] void be_killed_in_beat_8(int socket) {
  const shm::Segment segment(1, kLayout);
  std::strcpy(reinterpret_cast<char*>(segment.notes().data()), "was in beat 8");
  segment.counters().finished.store(8);
  send_descriptor(socket, segment.descriptor());
  for (;;) pause();
}

TEST(ShmSegment, ADeadRanksMemoryStaysReadable) {
  std::array<int, 2> sockets{};
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets.data()), 0);
  const Fd mine(sockets[0]);
  const Fd theirs(sockets[1]);
  const pid_t child = fork();
  if (child == 0) be_killed_in_beat_8(theirs.get());
  const Fd received = receive_descriptor(mine.get());
  kill(child, SIGKILL);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  const shm::PeerSegment dead(received.get(), 1, kLayout);
  EXPECT_STREQ(reinterpret_cast<const char*>(dead.notes().data()), "was in beat 8");
  EXPECT_EQ(dead.counters().finished.load(), 8U);
}

// Rank 0 sends, rank 1 receives, both in this thread.
class ShmSleep : public ::testing::Test {
 protected:
  static bool is_readable(const Transport& transport) {
    pollfd event{transport.event_fd(), POLLIN, 0};
    return poll(&event, 1, 0) == 1;
  }
  void begin(std::uint64_t number) {
    beat_ = {number, 1};
    sender_->begin(beat_, {});
    receiver_->begin(beat_, incoming_);
  }
  void send_and_finish() {
    ASSERT_TRUE(sender_->may_send(beat_, 1));
    sender_->send(beat_, small_place(1));
    sender_->finish(beat_);
  }

  ShmMeeting meeting_{2, {.bytes = 512, .messages = 1, .phases = 1}};
  std::unique_ptr<Transport> sender_ = meeting_.join(0);
  std::unique_ptr<Transport> receiver_ = meeting_.join(1);
  const std::vector<Place> incoming_ = {small_place(0)};
  Beat beat_;
};

TEST_F(ShmSleep, AMessageWakesASleeperOnly) {
  begin(0);
  EXPECT_TRUE(receiver_->arm());
  EXPECT_FALSE(is_readable(*receiver_));
  send_and_finish();
  EXPECT_TRUE(is_readable(*receiver_));
  receiver_->disarm();
  EXPECT_FALSE(is_readable(*receiver_));
  EXPECT_EQ(receiver_->arrival(beat_, incoming_[0]), Arrival::kHere);
  receiver_->finish(beat_);

  begin(1);
  send_and_finish();
  EXPECT_FALSE(is_readable(*receiver_)) << "it was awake";
}

TEST_F(ShmSleep, AMessageThatCameBeforeIsWorthOneMoreQuestion) {
  begin(0);
  EXPECT_EQ(receiver_->arrival(beat_, incoming_[0]), Arrival::kNotYet);
  send_and_finish();
  EXPECT_FALSE(receiver_->arm());
  receiver_->disarm();
  EXPECT_TRUE(receiver_->arm()) << "nobody asks for the message";
  receiver_->disarm();
}

TEST_F(ShmSleep, AFreeCopyWakesWhoWaitsForOne) {
  begin(0);
  send_and_finish();
  sender_->begin({1, 1}, {});
  EXPECT_TRUE(sender_->arm());
  receiver_->begin(beat_, incoming_);
  receiver_->finish(beat_);
  EXPECT_FALSE(is_readable(*sender_)) << "it waits for no copy";
  sender_->disarm();

  begin(1);
  send_and_finish();
  sender_->begin({2, 1}, {});
  EXPECT_FALSE(sender_->may_send({2, 1}, 1));
  EXPECT_TRUE(sender_->arm());
  receiver_->finish(beat_);
  EXPECT_TRUE(is_readable(*sender_));
  sender_->disarm();
  EXPECT_FALSE(is_readable(*sender_));
  EXPECT_TRUE(sender_->may_send({2, 1}, 1));
}

TEST_F(ShmSleep, ACopyThatGotFreeBeforeIsWorthOneMoreQuestion) {
  begin(0);
  send_and_finish();
  sender_->begin({1, 1}, {});
  EXPECT_FALSE(sender_->may_send({1, 1}, 1));
  receiver_->finish(beat_);
  EXPECT_FALSE(sender_->arm());
  sender_->disarm();
  EXPECT_TRUE(sender_->may_send({1, 1}, 1));
  EXPECT_TRUE(sender_->arm());
  sender_->disarm();
}

TEST_F(ShmSleep, WhoeverWasRefusedIsAskedAgainThoughAnotherWasNot) {
  begin(0);
  send_and_finish();
  sender_->begin({1, 1}, {});
  EXPECT_FALSE(sender_->may_send({1, 1}, 1)) << "for one message";
  receiver_->finish(beat_);
  EXPECT_TRUE(sender_->may_send({1, 1}, 1)) << "for the next";
  EXPECT_FALSE(sender_->arm());
  sender_->disarm();
  EXPECT_TRUE(sender_->arm());
  sender_->disarm();
}

TEST(ShmTransport, RanksOfOtherMachinesAreLeftOut) {
  const shm::Layout layout(4, kSmallLimits);
  shm::Segment first(1, layout);
  shm::Segment second(3, layout);
  std::vector<shm::Peer> of_first;
  std::vector<shm::Peer> of_second;
  of_first.push_back({shm::PeerSegment(second.descriptor(), 3, layout), shm::make_wake_descriptor()});
  of_second.push_back({shm::PeerSegment(first.descriptor(), 1, layout), shm::make_wake_descriptor()});
  shm::ShmTransport one(std::move(first), shm::make_wake_descriptor(), std::move(of_first));
  shm::ShmTransport other(std::move(second), shm::make_wake_descriptor(), std::move(of_second));
  const Beat beat{0, 1};
  const std::vector<Place> incoming = {small_place(1)};
  one.begin(beat, {});
  other.begin(beat, incoming);
  std::memcpy(one.outbox(Box::kPair, 3, 0) + kMessageHeader, "12345678", 8);
  one.send(beat, small_place(3));
  EXPECT_EQ(other.arrival(beat, incoming[0]), Arrival::kHere);
  EXPECT_EQ(std::memcmp(other.inbox(Box::kPair, 1, 0) + kMessageHeader, "12345678", 8), 0);
  one.notes()[0] = std::byte{9};
  EXPECT_EQ(other.notes(1)[0], std::byte{9});
  EXPECT_TRUE(other.notes(0).empty());
}

TEST(ShmTransport, PeersThatDoNotBelongTogetherAreRefused) {
  const auto with_peers = [](const std::vector<const shm::Segment*>& segments) {
    return [segments] {
      std::vector<shm::Peer> peers;
      for (const shm::Segment* segment : segments)
        peers.push_back({shm::PeerSegment(*segment), shm::make_wake_descriptor()});
      const shm::ShmTransport made(shm::Segment(0, kLayout), shm::make_wake_descriptor(), std::move(peers));
    };
  };
  const shm::Segment own(0, kLayout);
  const shm::Segment second(2, kLayout);
  const shm::Segment stranger(3, shm::Layout(4, kSmallLimits));
  EXPECT_NO_THROW(with_peers({&second})());
  expect_invalid(with_peers({&own}), {"rank 0", "twice"});
  expect_invalid(with_peers({&second, &second}), {"rank 2", "twice"});
  expect_invalid(with_peers({&stranger}), {"rank 3", "another layout"});
  engine::Limits roomier = kLayout.limits();
  roomier.room = 2 * roomier.bytes;
  const shm::Segment roomy(2, shm::Layout(kLayout.size(), roomier));
  expect_invalid(with_peers({&roomy}), {"rank 2", "another layout"});
  expect_invalid([] { const shm::ShmTransport made(shm::Segment(0, kLayout), Fd(), {}); }, {"to sleep on"});
  const auto without_wake = [&] {
    std::vector<shm::Peer> peers;
    peers.push_back({shm::PeerSegment(second), Fd()});
    const shm::ShmTransport made(shm::Segment(0, kLayout), shm::make_wake_descriptor(), std::move(peers));
  };
  expect_invalid(without_wake, {"rank 2", "to wake it with"});
}

}  // namespace
}  // namespace onesum::engine::testing
