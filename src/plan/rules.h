// What each step may do by itself, whenever it runs: where it runs, which buffers it may touch, and in which
// types.
//
// plan/verify.h calls it first; what a plan computes as a whole is judged after it.
#pragma once

#include "plan/plan.h"

namespace onesum::plan {

bool is_integer(Element element) noexcept;

// Whether a sum formed in `from` may be rounded to `to`: from integers to integers or reals, from reals to
// reals, from complex to complex. Never from or to bool.
bool is_convertible(Element from, Element to) noexcept;

// Whether a native collective adds values of a type. What vendors' libraries lack: bool, 16-bit integers,
// complex numbers, and the wide integers that exist inside plans only.
bool adds_natively(Element element) noexcept;

// Whether a native collective may form the sums of a pack with this accumulator from sources of `element`: it
// adds in their own type. 16-bit floats it rounds on the way, which a plan that claims another order than the
// canonical one may do.
bool sums_natively(Element element, Element accumulator) noexcept;

// For a well-formed plan. Throws invalid_argument naming the pack, the buffer, or the step and its operands.
//  - A step runs on a device of its lane's rank and touches buffers of that rank only.
//  - Inputs, views and the slots' messages are not overwritten, slots not read. A step writes a buffer, and
//  sends on
//    a channel, at most once.
//  - All operands of a step are the same run of chunks of the same pack; a call takes whole packs.
//  - A pack combines as its accumulator's type can (base/combine.h), and only sums are divided; steps of more
//    than one source combine as their pack does.
//  - copy: one element type. reduce: sources widen to the accumulator, which is the pack's if there is
//  anything to
//    add or divide; destinations have the accumulator's or the pack's output type. Integers are divided in
//    the output type only, which then must not be an integer type.
//  - native: memory of the rank's own devices in its group, neither slots nor views, of one type, one source
//    and one destination for each as its collective has it (plan/plan.h). What adds has a type that sums
//    natively, and is of a pack of sums; so is what a call gives.
//  - wait: for a step of the same rank.
//  - Replicas of a pack have at most one buffer each, and one element type unless they are concatenated; then
//    every chunk is brought by exactly one of them. No two temporaries share a number.
void check_rules(const Plan& plan);

}  // namespace onesum::plan
