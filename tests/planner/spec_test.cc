// docs/semantics.md, 6.5: all-reduce specs as text and as values, and what is refused.
#include "planner/spec.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "support/expect_error.h"

namespace onesum::planner {
namespace {

using testing::expect_invalid;
using Specs = std::vector<AllReduceSpec>;

TEST(SpecText, ReadsAlgorithmsShardsAndLimits) {
  EXPECT_EQ(parse_specs("xring"), (Specs{{"xring", 1, -1}}));
  EXPECT_EQ(parse_specs("pscpu/pscpu#2"), (Specs{{"pscpu/pscpu", 2, -1}}));
  EXPECT_EQ(parse_specs("pscpu:2k:pscpu#2:64k:xring"),
            (Specs{{"pscpu", 1, 2048}, {"pscpu", 2, 65536}, {"xring", 1, -1}}));
  EXPECT_EQ(parse_specs("nccl:0:auto"), (Specs{{"nccl", 1, 0}, {"auto", 1, -1}}));
}

TEST(SpecText, UnitsArePowersOf1024InEitherCase) {
  const std::int64_t kilo = 1024;
  const auto limit = [](const std::string& text) { return parse_specs("nccl:" + text + ":xring")[0].limit; };
  EXPECT_EQ(limit("100"), 100);
  EXPECT_EQ(limit("3k"), 3 * kilo);
  EXPECT_EQ(limit("3K"), 3 * kilo);
  EXPECT_EQ(limit("3m"), 3 * kilo * kilo);
  EXPECT_EQ(limit("3M"), 3 * kilo * kilo);
  EXPECT_EQ(limit("3g"), 3 * kilo * kilo * kilo);
  EXPECT_EQ(limit("3G"), 3 * kilo * kilo * kilo);
  EXPECT_EQ(limit("3t"), 3 * kilo * kilo * kilo * kilo);
  EXPECT_EQ(limit("8388607T"), 8388607 * kilo * kilo * kilo * kilo);
  EXPECT_EQ(limit("9223372036854775807"), INT64_MAX);
}

TEST(SpecText, PrintsTheShortestTextThatReadsBack) {
  for (const char* text :
       {"xring", "auto#3", "pscpu:2k:pscpu#2:64k:xring", "nccl#1024:1000:nccl/rechd:1M:direct",
        "rechd:0:hierarchical_copy/psgpu:1T:psgpu/hierarchical_copy", "nccl:1025k:xring"}) {
    EXPECT_EQ(text_of_specs(parse_specs(text)), text);
  }
  EXPECT_EQ(text_of_specs(parse_specs("nccl#1:2048:xring#02")), "nccl:2k:xring#2");
  EXPECT_EQ(text_of_specs(parse_specs("nccl:1048576K:xring")), "nccl:1G:xring");
}

TEST(SpecText, RefusesWhatCannotBeRead) {
  const auto refuse = [](const char* text, std::initializer_list<std::string_view> parts) {
    expect_invalid([&] { parse_specs(text); }, parts);
  };
  refuse("", {"all_reduce_spec is empty", "such as"});
  refuse("nccl:2k", {"all_reduce_spec[0]", "nothing follows"});
  refuse("nccl:2k:", {"all_reduce_spec[1]", "no algorithm"});
  refuse(":2k:nccl", {"all_reduce_spec[0]", "no algorithm"});
  refuse("nccl:2k:xring:", {"all_reduce_spec[1]", "limit \"\""});
  for (const char* limit :
       {"k", "2kk", "2x", "-1", "+2", " 2", "0x10", "2.5k", "9223372036854775808", "8388608T"}) {
    refuse(("nccl:" + std::string(limit) + ":xring").c_str(),
           {"all_reduce_spec[0]", "limit \"" + std::string(limit) + "\"", "bytes"});
  }
  for (const char* shards : {"", "0", "-1", "1025", "two", "2#2"}) {
    refuse(("nccl:2k:xring#" + std::string(shards)).c_str(),
           {"all_reduce_spec[1]", "xring", "\"" + std::string(shards) + "\" shards", "1 to 1024"});
  }
  refuse("nccl:2k:xring:1k:pscpu", {"all_reduce_spec[1]", "limit 1024", "limit 2048", "increase"});
}

TEST(Specs, OfValuesAreCheckedToo) {
  const auto refuse = [](const Specs& specs, std::initializer_list<std::string_view> parts) {
    expect_invalid([&] { valid_specs(specs); }, parts);
  };
  EXPECT_EQ(valid_specs({{"nccl", 2, 1024}, {"pscpu/pscpu", 2, -7}}),
            (Specs{{"nccl", 2, 1024}, {"pscpu/pscpu", 2, -1}}));
  refuse({}, {"all_reduce_spec is empty"});
  refuse({{"nccl", 0, -1}}, {"all_reduce_spec[0]", "nccl", "0 shards", "1 to 1024"});
  refuse({{"nccl", 1, 8}, {"xring", -3, -1}}, {"all_reduce_spec[1]", "xring", "-3 shards"});
  refuse({{"nccl", 1025, -1}}, {"1025 shards"});
  refuse({{"nccl", 1, 8}}, {"all_reduce_spec[0]", "last", "limit 8", "expected -1"});
  refuse({{"nccl", 1, 8}, {"xring", 1, 9}}, {"all_reduce_spec[1]", "last", "limit 9"});
  refuse({{"nccl", 1, 8}, {"xring", 1, 8}, {"pscpu", 1, -1}}, {"all_reduce_spec[1]", "limit 8", "increase"});
  refuse({{"nccl", 1, 8}, {"xring", 1, 7}, {"pscpu", 1, -1}}, {"all_reduce_spec[1]", "limit 7", "limit 8"});
  refuse({{"nccl", 1, -1}, {"xring", 1, -1}},
         {"all_reduce_spec[0]", "limit -1", "nothing for", "all_reduce_spec[1]", "only the last"});
  refuse({{"", 1, -1}}, {"all_reduce_spec[0]", "no algorithm", "nccl, xring"});
}

TEST(Algorithms, AreLevelsAndPairsOfThem) {
  const std::vector<std::string> levels{
      "nccl",     "xring",    "rechd",    "pscpu", "psgpu", "direct", "hierarchical_copy",
      "exchange", "machines", "doubling", "pool"};
  EXPECT_NO_THROW(check_algorithm("auto", "x"));
  for (const std::string& inside : levels) {
    EXPECT_NO_THROW(check_algorithm(inside, "x"));
    for (const std::string& across : levels) {
      std::string alg = inside;
      alg += '/';
      alg += across;
      EXPECT_NO_THROW(check_algorithm(alg, "x"));
      EXPECT_EQ(levels_of(alg).inside, inside);
      EXPECT_EQ(levels_of(alg).across, across);
      EXPECT_TRUE(has_level({alg}, across));
    }
    expect_invalid([&] { check_algorithm(inside + "/auto", "x"); }, {"x has", inside, "alone"});
    expect_invalid([&] { check_algorithm("auto/" + inside, "x"); }, {"x has", inside, "alone"});
  }
  EXPECT_FALSE(has_level({"pscpu/xring"}, "nccl"));
}

TEST(Algorithms, ThatAreUnknownAreRefusedWithAGuess) {
  const auto refuse = [](const char* alg, std::initializer_list<std::string_view> parts) {
    expect_invalid([&] { check_algorithm(alg, "thing 7"); }, parts);
  };
  refuse("ring", {"thing 7", "\"ring\"", "did you mean xring?", "Expected nccl, xring, rechd"});
  refuse("NCCL", {"did you mean nccl?"});
  refuse("hierarchical", {"did you mean hierarchical_copy?"});
  refuse("nccl/ring", {"\"nccl/ring\"", "did you mean nccl/xring?"});
  refuse("pcpu/pscpu", {"did you mean pscpu/pscpu?"});
  refuse("nccl/", {"\"nccl/\"", "did you mean nccl?"});
  refuse("/nccl", {"\"/nccl\"", "not known"});
  refuse("collective operations", {"not known. Expected"});
  refuse("nccl/xring/pscpu", {"2 slashes", "one at most"});
  refuse("nccl ", {"\"nccl \""});
}

}  // namespace
}  // namespace onesum::planner
