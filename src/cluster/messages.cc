#include "cluster/messages.h"

#include <algorithm>

#include "base/bytes.h"

namespace onesum::cluster {
namespace {

void write(ByteWriter& writer, const Card& card) {
  writer.text(card.machine);
  writer.text(card.unix_name);
  writer.text(card.host);
  writer.number(card.port);
  writer.sized(card.offer);
}

Card read_card(ByteReader& reader) {
  Card card;
  card.machine = reader.text();
  card.unix_name = reader.text();
  card.host = reader.text();
  card.port = reader.number<std::uint16_t>();
  card.offer = reader.sized();
  return card;
}

Ticket read_ticket(ByteReader& reader) {
  Ticket ticket;
  std::ranges::copy(reader.raw(ticket.size()), ticket.begin());
  return ticket;
}

}  // namespace

std::vector<std::byte> encode(const Hello& hello) {
  ByteWriter writer;
  writer.number(hello.protocol);
  writer.text(hello.version);
  writer.number(hello.rank);
  if (hello.protocol != kProtocol) return writer.take();
  writer.number(hello.size);
  writer.text(hello.job);
  writer.number(hello.patience_milliseconds);
  writer.number(static_cast<std::uint32_t>(hello.settings.size()));
  for (const Setting& setting : hello.settings) {
    writer.text(setting.name);
    writer.text(setting.value);
  }
  write(writer, hello.card);
  return writer.take();
}

Hello decode_hello(std::span<const std::byte> payload) {
  ByteReader reader(payload);
  Hello hello;
  hello.protocol = reader.number<std::uint32_t>();
  hello.version = reader.text();
  hello.rank = reader.number<std::uint32_t>();
  if (hello.protocol != kProtocol) return hello;
  hello.size = reader.number<std::uint32_t>();
  hello.job = reader.text();
  hello.patience_milliseconds = reader.number<std::uint64_t>();
  for (auto left = reader.number<std::uint32_t>(); left > 0; --left) {
    Setting& setting = hello.settings.emplace_back();  // a count that lies ends with the bytes
    setting.name = reader.text();
    setting.value = reader.text();
  }
  hello.card = read_card(reader);
  reader.expect_end();
  return hello;
}

std::vector<std::byte> encode(const Ticket& ticket) { return {ticket.begin(), ticket.end()}; }

Ticket decode_ticket(std::span<const std::byte> payload) {
  ByteReader reader(payload);
  const Ticket ticket = read_ticket(reader);
  reader.expect_end();
  return ticket;
}

std::vector<std::byte> encode(const Introduction& introduction) {
  ByteWriter writer;
  writer.raw(introduction.ticket);
  writer.number(introduction.rank);
  return writer.take();
}

Introduction decode_introduction(std::span<const std::byte> payload) {
  ByteReader reader(payload);
  Introduction introduction;
  introduction.ticket = read_ticket(reader);
  introduction.rank = reader.number<std::uint32_t>();
  reader.expect_end();
  return introduction;
}

std::vector<std::byte> encode(const CardOf& card) {
  ByteWriter writer;
  writer.number(card.rank);
  write(writer, card.card);
  return writer.take();
}

CardOf decode_card(std::span<const std::byte> payload) {
  ByteReader reader(payload);
  CardOf card;
  card.rank = reader.number<std::uint32_t>();
  card.card = read_card(reader);
  reader.expect_end();
  return card;
}

std::vector<std::byte> encode(const Refusal& refusal) {
  ByteWriter writer;
  writer.number(static_cast<std::uint8_t>(refusal.code));
  writer.text(refusal.text);
  return writer.take();
}

Refusal decode_refusal(std::span<const std::byte> payload) {
  ByteReader reader(payload);
  Refusal refusal;
  const auto code = reader.number<std::uint8_t>();
  if (code > static_cast<std::uint8_t>(ErrorCode::kInternal)) {
    throw Error(ErrorCode::kInvalidArgument, "a refusal has no known code");
  }
  refusal.code = static_cast<ErrorCode>(code);
  refusal.text = reader.text();
  reader.expect_end();
  return refusal;
}

}  // namespace onesum::cluster
