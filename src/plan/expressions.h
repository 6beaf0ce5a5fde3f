// Expressions that plans compute, each written down once: equal expressions have equal numbers.
//
// The two operands of an addition, or of what else combines them, are kept in order of their lowest replicas,
// so expressions are equal up to swapping them. What loses nothing (a conversion to a type that holds every
// value, a division by one) leaves no trace.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/combine.h"
#include "base/element.h"

namespace onesum::plan {

using Expression = std::uint32_t;                   // the number of one
inline constexpr Expression kNothing = 0xffffffff;  // memory that nobody wrote

class Expressions {
 public:
  enum class Kind : std::uint8_t { kReplica, kCombine, kDivide, kConvert, kCall, kNative, kArguments };
  struct Node {
    Kind kind = Kind::kReplica;
    Element type = Element::kFloat32;  // what it was formed in; every value of it is one of this type
    std::int64_t number = 0;           // kReplica: which; kCombine: how; kDivide: by what; kNative: which
                                       // collective
    Expression left = kNothing;        // the operand, or the first of two
    Expression right = kNothing;
    friend bool operator==(const Node&, const Node&) = default;
  };

  Expression replica(std::int64_t number, Element type);
  Expression combine(Expression a, Expression b, Combine how, Element type);
  Expression divide(Expression a, std::int64_t divisor, Element type);
  Expression convert(Expression a, Element type);
  // A user's function of some arguments, given as arguments(arguments(a, b), c).
  Expression arguments(Expression list, Expression last);
  Expression call(Expression arguments, Element type);

  // The sum of some arguments by a native collective, in an order that only its library knows: two
  // collectives of the same give different bits.
  Expression native(Expression arguments, std::int64_t collective, Element type);

  // What a step stores of a sum formed in `accumulator`: divided and rounded once. Integers are converted
  // first and divided in the result's type, everything else the other way round.
  Expression finish(Expression sum, Element accumulator, std::int64_t divisor, Element result);

  // Replicas 0 to n-1 combined in canonical order (plan.h).
  Expression canonical(std::size_t n, Element replica_type, Combine how, Element accumulator);

  const Node& operator[](Expression expression) const { return nodes_[expression]; }

  // "((r0 + r1) + r2) / 3" (r0 is replica 0; "r0 min r1" what is no sum), cut after about `longest`
  // characters; conversions as "float16(r0 + r1)".
  std::string to_text(Expression expression, std::size_t longest = 160) const;

 private:
  struct Hash {
    std::size_t operator()(const Node& node) const noexcept;
  };

  Expression intern(const Node& node);
  std::int64_t lowest_replica(const Node& node) const;

  std::vector<Node> nodes_;
  std::vector<std::int64_t> lowest_replicas_;  // in each; -1 in what has none
  std::unordered_map<Node, Expression, Hash> numbers_;
};

}  // namespace onesum::plan
