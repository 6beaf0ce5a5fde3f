#include "plan/results.h"

#include <string>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "plan/refuse.h"
#include "plan/text.h"

namespace onesum::plan {

namespace {

class PackCheck {
 public:
  PackCheck(const Plan& plan, std::int32_t number, const Locations& locations,
            const std::vector<Content>& contents, Expressions& expressions)
      : plan_(plan),
        number_(number),
        pack_(plan.pack(number)),
        locations_(locations),
        contents_(contents),
        expressions_(expressions),
        canonical_(expressions.canonical_sum(pack_.replicas.size(), replica_type(plan, number, 0),
                                             pack_.accumulator)) {}

  PackProof check() {
    PackProof proof{true, {}};
    const std::vector<std::int32_t> buffers = result_buffers(plan_, number_);
    for (std::size_t d = 0; d < buffers.size(); ++d) {
      for (std::uint32_t chunk = 0; chunk < num_chunks(pack_.split); ++chunk) {
        const Content& content = content_of(buffers[d], d, chunk);
        proof.canonical &= check_chunk(buffers[d], chunk, content);
        check_same(buffers.front(), buffers[d], chunk, content);
      }
    }
    if (!buffers.empty()) {
      proof.expression = expressions_.to_text(contents_[locations_.at(buffers.front(), 0)].value);
    }
    return proof;
  }

 private:
  // "b5 chunk 1, written by lane 0 step 3 (...)"
  std::string place(std::int32_t buffer, std::uint32_t chunk, const Content& content) const {
    const std::string writer =
        content.writer.lane < 0 ? "written by nobody" : "written by " + describe(plan_, content.writer);
    return fmt::format("pack {}: b{} chunk {}, {},", number_, buffer, chunk, writer);
  }

  const Content& content_of(std::int32_t buffer, std::size_t destination, std::uint32_t chunk) const {
    const Chunks& window = plan_.buffer(buffer).window;
    if (chunk < window.first || chunk - window.first >= window.count) {
      refuse(fmt::format("pack {}: b{}, its destination {}, has no room for chunk {}", number_, buffer,
                         destination, chunk));
    }
    const Content& content = contents_[locations_.at(buffer, chunk)];
    if (content.value == kNothing) {
      refuse(fmt::format("pack {}: no step writes b{} chunk {}, its destination {}", number_, buffer, chunk,
                         destination));
    }
    return content;
  }

  void check_same(std::int32_t first, std::int32_t buffer, std::uint32_t chunk,
                  const Content& content) const {
    const Content& other = contents_[locations_.at(first, chunk)];
    if (other.value == content.value) return;
    refuse(fmt::format("{} holds {}, but {} holds {}: results must have the same bits",
                       place(buffer, chunk, content), expressions_.to_text(content.value),
                       place(first, chunk, other), expressions_.to_text(other.value)));
  }

  // Returns whether the sum is canonical; refuses what is no sum of the replicas.
  bool check_chunk(std::int32_t buffer, std::uint32_t chunk, const Content& content) {
    if (pack_.contract == Contract::kConcatenate) return check_concatenation(buffer, chunk, content);
    const auto known = verdicts_.find(content.value);
    if (known != verdicts_.end()) return known->second;
    const Expression sum = strip_finish(buffer, chunk, content);
    check_contributions(buffer, chunk, content, sum);
    const bool canonical = sum == canonical_;
    if (!canonical && plan_.order == "canonical") {
      refuse(fmt::format("{} holds {}, the plan claims canonical order, which is {}",
                         place(buffer, chunk, content), expressions_.to_text(sum),
                         expressions_.to_text(canonical_)));
    }
    verdicts_.emplace(content.value, canonical);
    return canonical;
  }

  bool check_concatenation(std::int32_t buffer, std::uint32_t chunk, const Content& content) {
    const Element type = replica_type(plan_, number_, static_cast<std::int32_t>(chunk));
    const Expression expected = expressions_.finish(expressions_.replica(chunk, type), pack_.accumulator,
                                                    pack_.divisor, pack_.output);
    if (content.value == expected) return true;
    refuse(fmt::format("{} holds {}, expected {}", place(buffer, chunk, content),
                       expressions_.to_text(content.value), expressions_.to_text(expected)));
  }

  // The sum below the one division and the one rounding that finish it.
  Expression strip_finish(std::int32_t buffer, std::uint32_t chunk, const Content& content) {
    using Kind = Expressions::Kind;
    Expression sum = content.value;
    std::int64_t divisor = 1;
    bool converted = false;
    while (true) {
      const Expressions::Node& node = expressions_[sum];
      if (node.kind == Kind::kDivide && divisor == 1) {
        divisor = node.number;
      } else if (node.kind == Kind::kConvert && !converted) {
        converted = true;
      } else {
        break;
      }
      sum = node.left;
    }
    if (divisor != pack_.divisor) {
      refuse(fmt::format("{} is divided by {}, expected {}: it holds {}", place(buffer, chunk, content),
                         divisor, pack_.divisor, expressions_.to_text(content.value)));
    }
    // What a user's function returns has its own type, in which it may be finished as well.
    for (const Element accumulator : {pack_.accumulator, expressions_[sum].type}) {
      if (expressions_.finish(sum, accumulator, divisor, pack_.output) == content.value) return sum;
      if (expressions_[sum].kind != Kind::kCall) break;
    }
    refuse(fmt::format("{} holds {}, which is not divided and rounded as a result in {} should be",
                       place(buffer, chunk, content), expressions_.to_text(content.value),
                       to_string(pack_.output)));
  }

  // Every replica once, and nothing but additions and roundings. Each node is visited once, or a replica is
  // met a second time, which ends it.
  void check_contributions(std::int32_t buffer, std::uint32_t chunk, const Content& content,
                           Expression sum) const {
    using Kind = Expressions::Kind;
    std::vector<bool> seen(pack_.replicas.size(), false);
    std::vector<Expression> rest = {sum};
    while (!rest.empty()) {
      const Expressions::Node& node = expressions_[rest.back()];
      rest.pop_back();
      if (node.kind == Kind::kDivide) {
        refuse(fmt::format("{} is divided inside the sum: it holds {}", place(buffer, chunk, content),
                           expressions_.to_text(content.value)));
      }
      if (node.kind == Kind::kReplica) {
        const auto replica = static_cast<std::size_t>(node.number);
        if (seen[replica]) {
          refuse(fmt::format("{} holds replica {} more than once: {}", place(buffer, chunk, content), replica,
                             expressions_.to_text(content.value)));
        }
        seen[replica] = true;
      }
      if (node.right != kNothing) rest.push_back(node.right);
      if (node.left != kNothing) rest.push_back(node.left);
    }
    for (std::size_t replica = 0; replica < seen.size(); ++replica) {
      if (seen[replica]) continue;
      refuse(fmt::format("{} lacks replica {}: it holds {}", place(buffer, chunk, content), replica,
                         expressions_.to_text(content.value)));
    }
  }

  const Plan& plan_;
  std::int32_t number_;
  const Pack& pack_;
  const Locations& locations_;
  const std::vector<Content>& contents_;
  Expressions& expressions_;
  Expression canonical_;
  std::unordered_map<Expression, bool> verdicts_;  // of results already judged: whether they are canonical
};

}  // namespace

std::vector<std::int32_t> result_buffers(const Plan& plan, std::int32_t number) {
  const Pack& pack = plan.pack(number);
  std::vector<std::int32_t> buffers(pack.destinations.size(), -1);
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(plan.buffers.size()); ++i) {
    const Buffer& buffer = plan.buffer(i);
    if (buffer.pack != number || (buffer.role != Role::kOutput && buffer.role != Role::kInOut)) continue;
    int found = 0;
    for (std::size_t d = 0; d < buffers.size(); ++d) {
      const bool is_it = buffer.role == Role::kOutput ? buffer.index == static_cast<std::int32_t>(d)
                                                      : buffer.device == pack.destinations[d];
      if (!is_it) continue;
      if (buffers[d] >= 0) {
        refuse(fmt::format("pack {}: b{} and b{} are both its destination {}", number, buffers[d], i, d));
      }
      buffers[d] = i;
      ++found;
    }
    if (found != 1) {
      refuse(fmt::format("pack {}: b{} replaces {} destinations on device {}, expected 1", number, i, found,
                         buffer.device));
    }
  }
  for (std::size_t d = 0; d < buffers.size(); ++d) {
    if (buffers[d] < 0) refuse(fmt::format("pack {}: no buffer is its destination {}", number, d));
  }
  return buffers;
}

Proof check_results(const Plan& plan, const Locations& locations, const std::vector<Content>& contents,
                    Expressions& expressions) {
  Proof proof;
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(plan.packs.size()); ++i) {
    proof.packs.push_back(PackCheck(plan, i, locations, contents, expressions).check());
  }
  return proof;
}

}  // namespace onesum::plan
