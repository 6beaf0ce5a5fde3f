// Plans as text: what `onesum plan` prints and tests write.
//
// One thing a line, in this order; blank lines and lines that begin with '#' are skipped, spaces between
// words do not matter. Numbers are decimal. Packs, channels and buffers are numbered from 0 in the order of
// their lines.
//
//   plan     = "plan" name NL "order" name NL "devices" {rank} NL {pack} {channel} {group} {buffer} {lane}
//   pack     = "p"N contract ["by" name] element "to" element ["/" divisor] ";" ["split" {level} ";"]
//              "replicas" {device} ";" "destinations" {device} NL
//   contract = "reduce" | "concatenate" | "scatter"
//   level    = ("ragged" | "padded" | "counts") parts
//   channel  = "c"N device "->" device ["number" N] NL              number 0 is not written
//   group    = "g"N {device} NL
//   buffer   = "b"N role "of" "p"N "on" device element [run] NL     no run: the whole pack
//   role     = ("input" | "output" | "inout" | "temp") index | ("slot" | "view") "c"N
//   run      = "[" chunk [".." chunk] "]"                           first and last
//   lane     = "lane" "of" "rank" rank NL {step}                    steps are numbered from 0 in their lane
//   step     = "copy" "on" device ":" {operand} "=" operand NL
//   step     = "reduce" "on" device "in" element ":" {operand} "=" sum NL
//   step     = "call" "on" device "in" element ":" operand "=" function NL
//   step     = "recv" "c"N ":" operand NL
//   step     = "release" "c"N NL
//   step     = "wait" "lane" N "step" N NL
//   step     = "counts" "p"N NL
//   step     = "native" collective "over" "g"N ":" {operand} "=" {operand} NL
//   collective = "all_reduce" | "reduce" | "broadcast"
//   operand  = "b"N [run]                                           no run: the buffer's window
//   sum      = tree ["/" divisor] | tree operator tree
//   tree     = operand | "(" tree operator tree ")"                 the order of additions
//   operator = "+" | name                                           one and the same in all of a sum
//   name     = "product" | "min" | "max" | "bitand" | "bitor" | "bitxor"   what is no sum
//   function = "f" "(" operand {"," operand} ")" ["/" divisor]
//
// to_text leaves out the outermost parentheses of a sum that is not divided:
//   reduce on 0 in float32: b4 b5 = ((b0 + b1) + (b2 + b3)) / 4
//   reduce on 0 in float32: b4 = (b0 + b1) + b2
//   reduce on 0 in float32: b4 = (b0 min b1) min b2
#pragma once

#include <string>
#include <string_view>

#include "plan/plan.h"

namespace onesum::plan {

// parse_text gives back an equal plan. Throws invalid_argument unless the plan is well formed
// (plan/well_formed.h).
std::string to_text(const Plan& plan);

// The result is well formed. Throws invalid_argument naming the line, what was found and what was expected.
// Takes time and memory in proportion to the length of the text, whatever it says.
Plan parse_text(std::string_view text);

// For messages: "lane 0 step 3 (copy on 0: b4 = b0)", the step cut after about 100 characters.
std::string describe(const Plan& plan, StepRef ref);

// What stands between two operands: " + ", " min ".
std::string operator_of(Combine combine);

// "b4", "b4[1]", "b4[1..2]".
std::string describe(const Plan& plan, const Operand& operand);

}  // namespace onesum::plan
