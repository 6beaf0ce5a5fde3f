// Which message a step finds in the views that it reads.
#pragma once

#include <vector>

#include "plan/plan.h"

namespace onesum::exec {

// By number of the operand in Plan::operands: of a view that is read, the chunks of the message that the last
// kRecv before the step exposed; of any other operand, its own chunks. Throws internal if a view is read that
// holds no message, or another one; a verified plan has none of these.
std::vector<plan::Chunks> messages_of_operands(const plan::Plan& plan);

}  // namespace onesum::exec
