#include "cluster/verdict.h"

#include "base/bytes.h"

namespace onesum::cluster {
namespace {

std::uint32_t rank_to_number(std::int32_t rank) { return static_cast<std::uint32_t>(rank) + 1; }
std::int32_t rank_from_number(std::uint32_t number) { return static_cast<std::int32_t>(number - 1); }

ErrorCode code_from(std::uint8_t number) {
  if (number > static_cast<std::uint8_t>(ErrorCode::kInternal)) {
    throw Error(ErrorCode::kInvalidArgument, "a message of another worker names no error code");
  }
  return static_cast<ErrorCode>(number);
}

Subject subject_from(std::uint8_t number) {
  if (number > static_cast<std::uint8_t>(Subject::kShrink)) {
    throw Error(ErrorCode::kInvalidArgument, "a message of another worker names no kind of call");
  }
  return static_cast<Subject>(number);
}

bool flag_from(std::uint8_t number) {
  if (number > 1) throw Error(ErrorCode::kInvalidArgument, "a message of another worker has no yes or no");
  return number == 1;
}

}  // namespace

Bytes to_bytes(const Whereabouts& whereabouts) {
  ByteWriter out;
  out.number(whereabouts.calls);
  out.number<std::uint8_t>(whereabouts.is_inside ? 1 : 0);
  out.number(whereabouts.beats);
  out.number(rank_to_number(whereabouts.waits_for));
  return out.take();
}

Whereabouts whereabouts_from(std::span<const std::byte> bytes) {
  ByteReader in(bytes);
  Whereabouts whereabouts;
  whereabouts.calls = in.number<std::uint64_t>();
  whereabouts.is_inside = flag_from(in.number<std::uint8_t>());
  whereabouts.beats = in.number<std::uint64_t>();
  whereabouts.waits_for = rank_from_number(in.number<std::uint32_t>());
  in.expect_end();
  return whereabouts;
}

Bytes to_bytes(const Statement& statement) {
  ByteWriter out;
  out.number(statement.call);
  out.number(static_cast<std::uint8_t>(statement.subject));
  out.number<std::uint8_t>(statement.is_refused ? 1 : 0);
  out.number(static_cast<std::uint8_t>(statement.code));
  out.text(statement.text);
  out.sized(statement.request);
  return out.take();
}

Statement statement_from(std::span<const std::byte> bytes) {
  ByteReader in(bytes);
  Statement statement;
  statement.call = in.number<std::uint64_t>();
  statement.subject = subject_from(in.number<std::uint8_t>());
  statement.is_refused = flag_from(in.number<std::uint8_t>());
  statement.code = code_from(in.number<std::uint8_t>());
  statement.text = in.text();
  statement.request = in.sized();
  in.expect_end();
  return statement;
}

Bytes to_bytes(const Verdict& verdict) {
  ByteWriter out;
  out.number(static_cast<std::uint8_t>(verdict.code));
  out.number(rank_to_number(verdict.suspect));
  out.number(verdict.call);
  out.text(verdict.text);
  return out.take();
}

Verdict verdict_from(std::span<const std::byte> bytes) {
  ByteReader in(bytes);
  Verdict verdict;
  verdict.code = code_from(in.number<std::uint8_t>());
  verdict.suspect = rank_from_number(in.number<std::uint32_t>());
  verdict.call = in.number<std::uint64_t>();
  verdict.text = in.text();
  in.expect_end();
  return verdict;
}

}  // namespace onesum::cluster
