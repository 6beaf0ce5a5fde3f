// Which messages of a plan need no box, because what they carry lies in a tensor anyway.
//
// A contribution is sent from the tensor that it is copied from, a result from the tensor that it is written
// to, and a message that is copied to a tensor is received there. That saves copies where the transport makes
// enough of them by itself; memory that is shared with the receiver has to be written in any case.
//
// A tensor's memory is read and written by the steps of a verified plan as if each happened in its place. To
// keep it so, a message is received not before all steps are done that use the same chunks before it, and
// what overwrites chunks that were sent waits until they are taken.
#pragma once

#include <cstdint>
#include <vector>

#include "exec/mail.h"
#include "exec/messages.h"
#include "plan/plan.h"

namespace onesum::exec {

struct Lent {
  const plan::Operand* tensor = nullptr;  // in whose memory the payload lies, all of it; null: in a box
  // Of messages that are received:
  std::int32_t lane = -1;    // of the plan, in which they are read
  std::int32_t after = -1;   // not before this step of it is done; -1: at once
  bool after_sends = false;  // nor before what this rank sends from there is taken
};

struct Lending {
  std::vector<Lent> of_message;
  std::vector<std::vector<bool>> overwrites;  // by lane and step: chunks that were sent from there
};

// For a rank that has peers; what a round makes of it depends on sizes and on the transport.
Lending lending_of(const plan::Plan& plan, const Messages& messages, int own);

}  // namespace onesum::exec
