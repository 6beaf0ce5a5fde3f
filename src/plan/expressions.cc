#include "plan/expressions.h"

#include <algorithm>
#include <initializer_list>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "plan/plan.h"
#include "plan/rules.h"
#include "plan/text.h"

namespace onesum::plan {

std::size_t Expressions::Hash::operator()(const Node& node) const noexcept {
  // Multiplications by odd constants, with the high bits folded back (splitmix64).
  const auto mix = [](std::uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
  };
  const std::uint64_t operands = (std::uint64_t{node.left} << 32) | node.right;
  const std::uint64_t kind =
      (static_cast<std::uint64_t>(node.kind) << 8) | static_cast<std::uint64_t>(node.type);
  return mix(operands + 0x9e3779b97f4a7c15u * mix(static_cast<std::uint64_t>(node.number) * 0x10001u + kind));
}

Expression Expressions::intern(const Node& node) {
  const auto [entry, is_new] = numbers_.emplace(node, static_cast<Expression>(nodes_.size()));
  if (is_new) {
    lowest_replicas_.push_back(lowest_replica(node));
    nodes_.push_back(node);
  }
  return entry->second;
}

std::int64_t Expressions::lowest_replica(const Node& node) const {
  if (node.kind == Kind::kReplica) return node.number;
  if (node.left == kNothing) return lowest_replicas_[node.right];
  if (node.right == kNothing) return lowest_replicas_[node.left];
  return std::min(lowest_replicas_[node.left], lowest_replicas_[node.right]);
}

Expression Expressions::replica(std::int64_t number, Element type) {
  return intern({Kind::kReplica, type, number, kNothing, kNothing});
}

Expression Expressions::combine(Expression a, Expression b, Combine how, Element type) {
  if (std::pair(lowest_replicas_[b], b) < std::pair(lowest_replicas_[a], a)) std::swap(a, b);
  return intern({Kind::kCombine, type, static_cast<std::int64_t>(how), a, b});
}

Expression Expressions::divide(Expression a, std::int64_t divisor, Element type) {
  return divisor == 1 ? a : intern({Kind::kDivide, type, divisor, a, kNothing});
}

Expression Expressions::convert(Expression a, Element type) {
  return widens_to(nodes_[a].type, type) ? a : intern({Kind::kConvert, type, 0, a, kNothing});
}

Expression Expressions::arguments(Expression list, Expression last) {
  return intern({Kind::kArguments, Element::kBool, 0, list, last});
}

Expression Expressions::call(Expression arguments, Element type) {
  return intern({Kind::kCall, type, 0, arguments, kNothing});
}

Expression Expressions::native(Expression arguments, std::int64_t collective, Element type) {
  return intern({Kind::kNative, type, collective, arguments, kNothing});
}

Expression Expressions::finish(Expression sum, Element accumulator, std::int64_t divisor, Element result) {
  if (is_integer(accumulator)) return divide(convert(sum, result), divisor, result);
  return convert(divide(sum, divisor, accumulator), result);
}

Expression Expressions::canonical(std::size_t n, Element replica_type, Combine how, Element accumulator) {
  std::vector<Expression> stack;
  std::int64_t number = 0;
  for (const std::uint8_t merges : canonical_merges(n)) {
    stack.push_back(replica(number++, replica_type));
    for (std::uint8_t i = 0; i < merges; ++i) {
      const Expression right = stack.back();
      stack.pop_back();
      stack.back() = combine(stack.back(), right, how, accumulator);
    }
  }
  return stack.back();
}

std::string Expressions::to_text(Expression expression, std::size_t longest) const {
  // An explicit stack of what is still to be written: text, or an expression (in parentheses if it is a sum
  // inside something else). Expressions share parts, so the whole text may be exponentially longer than what
  // is shown.
  struct Item {
    Expression expression = kNothing;
    bool inside = false;
    std::string text;
  };
  std::vector<Item> items = {{expression, false, ""}};
  std::string text;
  const auto push = [&items](std::initializer_list<Item> in_order) {
    items.insert(items.end(), std::rbegin(in_order), std::rend(in_order));
  };
  const auto literal = [](std::string words) { return Item{kNothing, false, std::move(words)}; };
  while (!items.empty()) {
    if (text.size() > longest) return text + "...";
    const Item item = std::move(items.back());
    items.pop_back();
    text += item.text;
    if (item.expression == kNothing) continue;
    const Node& node = nodes_[item.expression];
    switch (node.kind) {
      case Kind::kReplica:
        text += fmt::format("r{}", node.number);
        break;
      case Kind::kCombine:
        push({literal(item.inside ? "(" : ""),
              {node.left, true, ""},
              literal(operator_of(static_cast<Combine>(node.number))),
              {node.right, true, ""},
              literal(item.inside ? ")" : "")});
        break;
      case Kind::kDivide:
        push({{node.left, true, ""}, literal(fmt::format(" / {}", node.number))});
        break;
      case Kind::kConvert:
        push({literal(fmt::format("{}(", onesum::to_string(node.type))),
              {node.left, false, ""},
              literal(")")});
        break;
      case Kind::kCall:
        push({literal("f("), {node.left, false, ""}, literal(")")});
        break;
      case Kind::kNative:
        push({literal("native("), {node.left, false, ""}, literal(")")});
        break;
      case Kind::kArguments:
        push({{node.left, false, ""}, literal(node.left == kNothing ? "" : ", "), {node.right, false, ""}});
        break;
    }
  }
  return text;
}

}  // namespace onesum::plan
