#include "plan/results.h"

#include <string>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "plan/contracts.h"
#include "plan/refuse.h"
#include "plan/text.h"

namespace onesum::plan {

namespace {

// The buffers of all replicas and of all results.
struct Ends {
  BuffersOfPacks replicas;
  BuffersOfPacks results;
};

class PackCheck {
 public:
  PackCheck(const Plan& plan, std::int32_t number, const Ends& ends, const Locations& locations,
            const std::vector<Content>& contents, Expressions& expressions)
      : plan_(plan),
        number_(number),
        pack_(plan.pack(number)),
        replicas_(ends.replicas[static_cast<std::size_t>(number)]),
        results_(ends.results[static_cast<std::size_t>(number)]),
        locations_(locations),
        contents_(contents),
        expressions_(expressions),
        canonical_(expressions.canonical(pack_.replicas.size(), type_of_replica(0), pack_.combine,
                                         pack_.accumulator)) {
    if (pack_.contract == Contract::kConcatenate) bringers_ = bringers(plan, ends.replicas, number);
    if (pack_.contract == Contract::kScatter) holders_ = holders(plan, ends.results, number);
  }

  PackProof check() {
    PackProof proof{true, {}};
    if (results_.empty()) return proof;
    for (std::uint32_t chunk = 0; chunk < num_chunks(pack_.split); ++chunk) {
      const std::size_t first = holders_.empty() ? 0 : static_cast<std::size_t>(holders_[chunk]);
      const Content& content = content_of(first, chunk);
      proof.canonical &= check_chunk(results_[first], chunk, content);
      if (chunk == 0) proof.expression = expressions_.to_text(content.value);
    }
    if (holders_.empty()) check_others();
    return proof;
  }

 private:
  // "b5 chunk 1, written by lane 0 step 3 (...)"
  std::string place(std::int32_t buffer, std::uint32_t chunk, const Content& content) const {
    const std::string writer =
        content.writer.lane < 0 ? "written by nobody" : "written by " + describe(plan_, content.writer);
    return fmt::format("pack {}: b{} chunk {}, {},", number_, buffer, chunk, writer);
  }

  // The type of a replica; the accumulator's if it has no buffer.
  Element type_of_replica(std::size_t replica) const {
    return replicas_[replica] < 0 ? pack_.accumulator : plan_.buffer(replicas_[replica]).element;
  }

  // All destinations hold what the first one holds; what differs is judged by itself first.
  void check_others() {
    for (std::size_t d = 1; d < results_.size(); ++d) {
      for (std::uint32_t chunk = 0; chunk < num_chunks(pack_.split); ++chunk) {
        const Content& content = content_of(d, chunk);
        const Content& first = contents_[locations_.at(results_.front(), chunk)];
        if (first.value == content.value) continue;
        check_chunk(results_[d], chunk, content);
        refuse(fmt::format("{} holds {}, but {} holds {}: results must have the same bits",
                           place(results_[d], chunk, content), expressions_.to_text(content.value),
                           place(results_.front(), chunk, first), expressions_.to_text(first.value)));
      }
    }
  }

  const Content& content_of(std::size_t destination, std::uint32_t chunk) const {
    const std::int32_t buffer = results_[destination];
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
    const auto replica = static_cast<std::size_t>(bringers_[chunk]);
    const Expression value = expressions_.replica(bringers_[chunk], type_of_replica(replica));
    const Expression expected = expressions_.finish(value, pack_.accumulator, pack_.divisor, pack_.output);
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

  // Every replica once, and nothing but the pack's operation and roundings. Each node is visited once, or a
  // replica is met a second time, which ends it.
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
      if (node.kind == Kind::kCombine && static_cast<Combine>(node.number) != pack_.combine) {
        refuse(fmt::format("{} combines replicas by {}, expected {}: it holds {}",
                           place(buffer, chunk, content), to_string(static_cast<Combine>(node.number)),
                           to_string(pack_.combine), expressions_.to_text(content.value)));
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
  const std::vector<std::int32_t>& replicas_;  // buffers
  const std::vector<std::int32_t>& results_;   // buffers
  const Locations& locations_;
  const std::vector<Content>& contents_;
  Expressions& expressions_;
  Expression canonical_;
  std::vector<std::int32_t> bringers_;             // kConcatenate: of each chunk
  std::vector<std::int32_t> holders_;              // kScatter: of each chunk
  std::unordered_map<Expression, bool> verdicts_;  // of results already judged: whether they are canonical
};

}  // namespace

Proof check_results(const Plan& plan, const Locations& locations, const std::vector<Content>& contents,
                    Expressions& expressions) {
  Proof proof;
  const Ends ends{replica_buffers(plan), result_buffers(plan)};
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(plan.packs.size()); ++i) {
    proof.packs.push_back(PackCheck(plan, i, ends, locations, contents, expressions).check());
  }
  return proof;
}

}  // namespace onesum::plan
