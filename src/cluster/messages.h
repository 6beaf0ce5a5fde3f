// What workers say to each other while they meet (rendezvous.h), as values and as payloads of frames. Pure.
//
// Decoding takes any bytes: what cannot be read is refused with invalid_argument.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <onesum/error.h>

namespace onesum::cluster {

// Changes whenever a message does. A hello begins in the same way in every version, so that workers of
// different ones can name each other.
inline constexpr std::uint32_t kProtocol = 1;

// Numbers below kFirstFreeKind are the rendezvous'; a connection carries others afterwards.
enum class Kind : std::uint16_t {
  kHello = 1,         // rank r to worker 0: who I am
  kWelcome = 2,       // worker 0 to all: everybody is here; the cards of all follow
  kCard = 3,          // worker 0 to all, once for each rank
  kIntroduction = 4,  // a higher rank to a lower one, on a connection of their own
  kReady = 5,         // rank r to worker 0: I am connected with everybody
  kComplaint = 6,     // rank r to worker 0: I cannot be (a Refusal)
  kGo = 7,            // worker 0 to all: so is everybody
  kRefusal = 8,       // worker 0 to all: the meeting has failed
};
inline constexpr std::uint16_t kFirstFreeKind = 64;

// As a frame has it.
constexpr std::uint16_t number_of(Kind kind) noexcept { return static_cast<std::uint16_t>(kind); }

// A variable on which all workers must agree.
struct Setting {
  std::string name;
  std::string value;
  friend bool operator==(const Setting&, const Setting&) = default;
};

// How others reach a worker, and what it tells them.
struct Card {
  std::string machine;     // which machine it runs on; equal texts, equal machines; empty: it does not say
  std::string unix_name;   // the abstract socket it listens on; empty: none
  std::string host;        // the IP address it listens on; empty: where worker 0 was reached
  std::uint16_t port = 0;  // 0: it does not listen there
  std::vector<std::byte> offer;
  friend bool operator==(const Card&, const Card&) = default;
};

struct Hello {
  std::uint32_t protocol = kProtocol;
  std::string version;  // of onesum
  std::uint32_t rank = 0;
  // Of another protocol, nothing of what follows is read.
  std::uint32_t size = 0;
  std::string job;
  std::uint64_t patience_milliseconds = 0;  // until its deadline
  std::vector<Setting> settings;
  Card card;
  friend bool operator==(const Hello&, const Hello&) = default;
};

// Names one meeting: a worker of another, even of the same job, does not know it.
using Ticket = std::array<std::byte, 16>;

struct Introduction {
  Ticket ticket{};
  std::uint32_t rank = 0;
  friend bool operator==(const Introduction&, const Introduction&) = default;
};

struct CardOf {
  std::uint32_t rank = 0;
  Card card;
  friend bool operator==(const CardOf&, const CardOf&) = default;
};

struct Refusal {
  ErrorCode code = ErrorCode::kInternal;
  std::string text;
  friend bool operator==(const Refusal&, const Refusal&) = default;
};

std::vector<std::byte> encode(const Hello& hello);
std::vector<std::byte> encode(const Ticket& ticket);
std::vector<std::byte> encode(const Introduction& introduction);
std::vector<std::byte> encode(const CardOf& card);
std::vector<std::byte> encode(const Refusal& refusal);

Hello decode_hello(std::span<const std::byte> payload);
Ticket decode_ticket(std::span<const std::byte> payload);
Introduction decode_introduction(std::span<const std::byte> payload);
CardOf decode_card(std::span<const std::byte> payload);
Refusal decode_refusal(std::span<const std::byte> payload);

}  // namespace onesum::cluster
