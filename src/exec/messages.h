// The messages of a plan: which step writes and which steps read each of them.
#pragma once

#include <cstdint>
#include <vector>

#include "exec/stages.h"
#include "plan/plan.h"

namespace onesum::exec {

struct Message {
  std::int32_t channel = 0;
  plan::Chunks chunks;
  std::int32_t buffer = -1;  // the slot that it is written to
};

// In an order that depends on nothing but the plan, so that both ends of a channel number alike.
struct Messages {
  std::vector<Message> all;
  // By message: the first of those that the same step sends with the same content, which may be itself.
  std::vector<std::int32_t> alike;
  // By number of the operand in Plan::operands: the message that it writes, receives or reads; -1: none.
  std::vector<std::int32_t> of_operand;
  Stages stages;  // of plans with calls
};

// Message i of a channel is what its ith send wrote and its ith recv exposes. Throws internal if a view is
// read that holds no message or another one, or one that nobody sends; a verified plan has none of these.
Messages messages_of(const plan::Plan& plan);

}  // namespace onesum::exec
