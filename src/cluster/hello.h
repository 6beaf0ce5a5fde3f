// What worker 0 and the others do alike in a meeting (rendezvous.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "cluster/messages.h"
#include "cluster/reception.h"
#include "cluster/rendezvous.h"

namespace onesum::cluster {

// Without where it listens.
Hello hello_of(const Meeting& meeting);
// The deadline of the worker that has just said it.
Clock::time_point deadline_of(const Hello& hello);

// Throws invalid_argument if others can reach one of the places and there is no secret.
void check_secret(const std::vector<MeetingPlace>& places, const std::optional<Secret>& secret);

// Listens on a Unix socket with a name that the kernel chooses, and returns the name.
std::string add_unix_listener(Reception& reception);

// Whether both have said so; then both listen on Unix sockets.
bool are_on_one_machine(const Card& a, const Card& b) noexcept;

// nullopt for messages of another kind, or that cannot be read, or of another meeting.
std::optional<Hello> hello_in(const Arrival& arrival);
std::optional<std::uint32_t> introduced_rank(const Arrival& arrival, const Ticket& ticket);
std::optional<Refusal> refusal_in(const Message& message, Kind kind);

}  // namespace onesum::cluster
