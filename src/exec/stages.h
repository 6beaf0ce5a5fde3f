// What of a plan comes before the call of a user's function, and what after it.
//
// A function takes its pack whole. Where the messages of such a pack have no room in one round, what the call
// reads is brought together in rounds before it, and what it gives is handed out in rounds after it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "plan/plan.h"

namespace onesum::exec {

struct Stages {
  std::vector<bool> has_call;    // by pack
  std::vector<bool> can_be_cut;  // by pack with a call: nothing after it reads a message from before
  std::vector<std::vector<bool>> is_after;  // by lane and step: it is its pack's call, or comes after it
  std::vector<bool> is_message_after;       // by message: it carries what the call gives
};

// `of_operand`: by number of the operand, the message that it writes, receives or reads; -1: none.
Stages stages_of(const plan::Plan& plan, std::span<const std::int32_t> of_operand, std::size_t messages);

}  // namespace onesum::exec
