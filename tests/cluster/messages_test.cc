// Messages of the rendezvous and their frames: what is written is read back, and nothing else is.
#include "cluster/messages.h"

#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "cluster/agreement.h"
#include "cluster/frames.h"
#include "cluster/meetings.h"
#include "cluster/place.h"
#include "support/expect_error.h"

namespace onesum::cluster {
namespace {

using namespace std::chrono_literals;
using testing::bytes_of;
using testing::expect_invalid;

const Card kCard{"machine", "name", "10.0.0.2", 4711, bytes_of("offer")};
const Hello kHello{kProtocol, "0.1.0", 2, 4, "job", 5000, {{"ONESUM_A", "1"}, {"ONESUM_B", ""}}, kCard};

// Reads back what it wrote, and refuses every part of it and anything behind it.
template <class Value, class Decode>
void expect_exact(const Value& value, const Decode& decode) {
  std::vector<std::byte> bytes = encode(value);
  EXPECT_EQ(decode(bytes), value);
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    expect_invalid([&] { decode(std::span(bytes).first(length)); }, {"ends too early"});
  }
  bytes.push_back(std::byte{0});
  expect_invalid([&] { decode(bytes); }, {"longer than its contents"});
}

TEST(MessagesTest, AreReadBackExactly) {
  expect_exact(kHello, decode_hello);
  expect_exact(Hello(), decode_hello);
  expect_exact(CardOf{3, kCard}, decode_card);
  expect_exact(Ticket{std::byte{1}, std::byte{2}}, decode_ticket);
  expect_exact(Introduction{{std::byte{9}}, 7}, decode_introduction);
  expect_exact(Refusal{ErrorCode::kDeadlineExceeded, "missing: 1"}, decode_refusal);
}

TEST(MessagesTest, AHelloOfAnotherProtocolIsReadUpToTheRank) {
  std::vector<std::byte> bytes = encode(kHello);
  bytes[0] = std::byte{9};
  bytes.resize(bytes.size() - 20);
  const Hello hello = decode_hello(bytes);
  EXPECT_EQ(hello.protocol, 9U);
  EXPECT_EQ(hello.version, "0.1.0");
  EXPECT_EQ(hello.rank, 2U);
  EXPECT_EQ(hello.job, "");
}

TEST(MessagesTest, CountsThatLieAreRefusedWithoutMemory) {
  std::vector<std::byte> bytes = encode(Hello());
  for (std::size_t i = 0; i + 4 <= bytes.size(); ++i) {
    std::vector<std::byte> changed = bytes;
    std::fill_n(changed.begin() + static_cast<std::ptrdiff_t>(i), 4, std::byte{0xff});
    try {
      decode_hello(changed);  // rank, size and patience may be anything
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    }
  }
  expect_invalid([] { decode_refusal(bytes_of(std::string("\x7f\0\0\0\0", 5))); }, {"no known code"});
}

TEST(FramesTest, ComeOutWholeHoweverTheyCome) {
  std::vector<std::byte> stream;
  for (int i = 0; i < 50; ++i) {
    const auto frame = encode_frame(static_cast<std::uint16_t>(i), static_cast<std::size_t>(i % 3),
                                    bytes_of(std::string(static_cast<std::size_t>(i * 7), 'x')));
    stream.insert(stream.end(), frame.begin(), frame.end());
  }
  for (const std::size_t step : {1U, 3U, 8U, 100U, 100000U}) {
    FrameBuffer buffer;
    int next = 0;
    for (std::size_t i = 0; i < stream.size(); i += step) {
      buffer.append(std::span(stream).subspan(i, std::min(step, stream.size() - i)));
      while (const auto frame = buffer.next()) {
        EXPECT_EQ(frame->kind, next);
        EXPECT_EQ(frame->num_descriptors, next % 3);
        EXPECT_EQ(frame->payload.size(), static_cast<std::size_t>(next * 7));
        ++next;
      }
    }
    EXPECT_EQ(next, 50);
    EXPECT_TRUE(buffer.is_empty());
  }
}

TEST(FramesTest, TooLongAnAnnouncementIsRefusedAtOnce) {
  for (const std::string_view header :
       {std::string_view("\xff\xff\xff\xff\1\0\0\0", 8), std::string_view("\1\0\x10\1\1\0\0\0", 8),
        std::string_view("\0\0\0\0\1\0\x11\0", 8)}) {
    FrameBuffer buffer;
    buffer.append(bytes_of(header.substr(0, 7)));
    EXPECT_FALSE(buffer.next());
    buffer.append(bytes_of(header.substr(7)));
    expect_invalid([&] { buffer.next(); }, {"announced a message of"});
  }
}

TEST(AgreementTest, TheFirstDifferenceIsNamed) {
  const auto other = [](const std::function<void(Hello&)>& change) {
    Hello hello = kHello;
    change(hello);
    return difference(kHello, hello).value_or("none");
  };
  EXPECT_EQ(other([](Hello&) {}), "none");
  EXPECT_EQ(other([](Hello& h) { h.rank = 4; }), "a worker has rank 4, expected 0 to 3");
  EXPECT_EQ(
      other([](Hello& h) { h.protocol = 2; }),
      "rank 2 runs onesum 0.1.0 (protocol 2), rank 0 runs onesum 0.1.0 (protocol 1); all workers need the "
      "same version");
  EXPECT_EQ(other([](Hello& h) { h.settings[1].value = "a\nb"; }),
            "rank 2 has ONESUM_B=\"a\\nb\", rank 0 has \"\"");
  EXPECT_EQ(other([](Hello& h) { std::swap(h.settings[0], h.settings[1]); }), "none");
}

TEST(AgreementTest, RanksAndTimesAreShort) {
  EXPECT_EQ(listed_ranks({}), "");
  EXPECT_EQ(listed_ranks({1, 3}), "1, 3");
  EXPECT_EQ(listed_ranks({1, 2, 4, 5, 6, 7, 9}), "1, 2, 4-7, 9");
  EXPECT_EQ(in_seconds(5s), "5 s");
  EXPECT_EQ(in_seconds(250ms), "0.25 s");
  EXPECT_EQ(in_seconds(300s), "300 s");
}

TEST(PlaceTest, TextsAreReadBack) {
  for (const std::string text :
       {"unix:onesum/0/a,b:c", "10.0.0.1:4711", "node17.cluster:1", "[2001:db8::1]:65535",
        "10.0.0.1:4711,[2001:db8::1]:4711,192.168.7.7:4711"}) {
    EXPECT_EQ(to_string(parse_places(text)), text);
  }
  EXPECT_EQ(parse_places("[::1]:5").front(), (MeetingPlace{.host = "::1", .port = 5}));
}

TEST(PlaceTest, WhatIsWrongIsSaid) {
  for (const std::string text : {"", "host", ":5", "host:", "host:0", "host:65536", "host:1x", "::1:5",
                                 "[]:5", "[::1:5", "a:1,", "unix:"}) {
    expect_invalid([&] { parse_places(text); }, {"address \"", "expected"});
  }
  expect_invalid([] { parse_places("unix:" + std::string(108, 'x')); }, {"1 to 107 characters"});
}

TEST(PlaceTest, LoopbackIsThisMachine) {
  for (const std::string host : {"localhost", "127.0.0.1", "127.8.9.10", "::1"}) {
    EXPECT_TRUE((MeetingPlace{.host = host, .port = 1}.is_on_this_machine())) << host;
  }
  for (const std::string host :
       {"", "localhost.example.org", "128.0.0.1", "::", "0.0.0.0", "node17", "fe80::1"}) {
    EXPECT_FALSE((MeetingPlace{.host = host, .port = 1}.is_on_this_machine())) << host;
  }
  EXPECT_TRUE(place_on_this_machine("job").is_on_this_machine());
}

TEST(PlaceTest, EveryJobHasANameOfItsOwn) {
  const std::string longest(500, 'j');
  EXPECT_LE(place_on_this_machine(longest).unix_name.size(), 107U);
  EXPECT_NE(place_on_this_machine(longest), place_on_this_machine(longest + "j"));
  EXPECT_NE(place_on_this_machine("a"), place_on_this_machine("b"));
}

}  // namespace
}  // namespace onesum::cluster
