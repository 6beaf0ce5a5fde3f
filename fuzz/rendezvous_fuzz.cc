// What strangers and other workers send while workers meet. The first byte says what the rest is: the payload
// of a message, a stream of frames, a handshake, or the text of an address. Nothing but onesum::Error comes
// out, what can be read prints back to the same bytes, and nobody without the secret gets through.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <sys/socket.h>

#include <onesum/error.h>

#include "cluster/agreement.h"
#include "cluster/frames.h"
#include "cluster/handshake.h"
#include "cluster/messages.h"
#include "cluster/place.h"

namespace {

using namespace onesum::cluster;
using Bytes = std::span<const std::byte>;

void require(bool holds) {
  if (!holds) std::abort();
}

template <class Read>
auto read(const Read& function) -> std::optional<decltype(function())> {
  try {
    return function();
  } catch (const onesum::Error& error) {
    require(error.code() == onesum::ErrorCode::kInvalidArgument);
    require(std::string_view(error.what()).size() < 2000);
    return std::nullopt;
  }
}

template <class Decode>
void check_message(Bytes payload, const Decode& decode) {
  const auto value = read([&] { return decode(payload); });
  if (!value) return;
  const std::vector<std::byte> again = encode(*value);
  require(decode(again) == *value);
  require(std::ranges::equal(again, payload));
}

void check_hello(Bytes payload) {
  const auto hello = read([&] { return decode_hello(payload); });
  if (!hello) return;
  require(decode_hello(encode(*hello)) == *hello);
  Hello own;
  own.size = 4;
  own.settings = {{"ONESUM_A", "1"}};
  const auto problem = difference(own, *hello);
  require(problem || (hello->rank < own.size && hello->size == own.size));
  require(!difference(*hello, *hello) || hello->rank >= hello->size || hello->settings.size() > 1);
}

void check_frames(Bytes stream) {
  FrameBuffer whole;
  FrameBuffer bit_by_bit;
  whole.append(stream);
  std::size_t fed = 0;
  for (;;) {
    const auto frame = read([&] { return whole.next(); });
    std::optional<std::optional<Frame>> same;
    for (;;) {
      same = read([&] { return bit_by_bit.next(); });
      if (!same || *same || fed == stream.size()) break;
      bit_by_bit.append(stream.subspan(fed++, 1));
    }
    require(frame.has_value() == same.has_value());
    if (!frame || !*frame) return;
    require(*same && (*frame)->payload == (*same)->payload && (*frame)->kind == (*same)->kind);
    require((*frame)->payload.size() <= kMostPayloadBytes && (*frame)->num_descriptors <= kMostDescriptors);
  }
}

void check_handshake(Bytes bytes) {
  static const Passport passport{Secret::from_text("nobody will guess this one"), "job"};
  for (const auto role : {Handshake::Role::kCaller, Handshake::Role::kListener}) {
    std::array<int, 2> ends{};
    require(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends.data()) == 0);
    const onesum::Fd end(ends[0]);
    Handshake handshake(onesum::Fd(ends[1]), role, passport);
    require(::send(end.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
            static_cast<ssize_t>(bytes.size()));
    require(handshake.proceed() != Handshake::State::kDone);
  }
}

void check_place(Bytes bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const auto places = read([&] { return parse_places(text); });
  if (!places) return;
  require(!places->empty() && parse_places(to_string(*places)) == *places);
  for (const MeetingPlace& place : *places) (void)place.is_on_this_machine();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const Bytes rest = std::as_bytes(std::span(data + 1, size - 1));
  switch (data[0]) {
    case 'h':
      check_hello(rest);
      break;
    case 'c':
      check_message(rest, decode_card);
      break;
    case 't':
      check_message(rest, decode_ticket);
      break;
    case 'i':
      check_message(rest, decode_introduction);
      break;
    case 'r':
      check_message(rest, decode_refusal);
      break;
    case 'f':
      check_frames(rest);
      break;
    case 's':
      check_handshake(rest);
      break;
    case 'p':
      check_place(rest);
      break;
    default:
      break;
  }
  return 0;
}
