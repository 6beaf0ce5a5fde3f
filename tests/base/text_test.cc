#include "base/text.h"

#include <array>
#include <string>

#include <gtest/gtest.h>

namespace onesum {
namespace {

TEST(Quoted, EscapesWhatIsNotPrintable) {
  EXPECT_EQ(quoted("plain"), "\"plain\"");
  EXPECT_EQ(quoted(""), "\"\"");
  EXPECT_EQ(quoted("a\"b\\c\nd\x07\xff"), R"("a\"b\\c\nd\x07\xff")");
}

TEST(Quoted, CutsLongText) {
  EXPECT_EQ(quoted(std::string(200, 'x')), "\"" + std::string(200, 'x') + "\"");
  EXPECT_EQ(quoted(std::string(201, 'x')), "\"" + std::string(200, 'x') + "\"… (201 characters)");
}

TEST(Nearest, FindsTheClosestName) {
  constexpr std::array<std::string_view, 3> names = {"ONESUM_THREADS", "ONESUM_POOL_BYTES", "ONESUM_LOG"};
  EXPECT_EQ(nearest("ONESUM_THREAD", names), "ONESUM_THREADS");
  EXPECT_EQ(nearest("onesum_log", names), "ONESUM_LOG");
  EXPECT_EQ(nearest("ONESUM_POOLBYTES", names), "ONESUM_POOL_BYTES");
  EXPECT_EQ(nearest("ONESUM_POOL", names), "ONESUM_POOL_BYTES");
  EXPECT_EQ(nearest("x", names), std::nullopt);
  EXPECT_EQ(nearest(std::string(1000, 'x'), names), std::nullopt);
  EXPECT_EQ(nearest("x", {}), std::nullopt);
}

TEST(Listed, JoinsWithOr) {
  constexpr std::array<std::string_view, 3> names = {"a", "b", "c"};
  EXPECT_EQ(listed(names), "a, b or c");
  EXPECT_EQ(listed(std::span(names).first(2)), "a or b");
  EXPECT_EQ(listed(std::span(names).first(1)), "a");
  EXPECT_EQ(listed({}), "");
}

TEST(ParseNumber, TakesDigitsOnly) {
  EXPECT_EQ(parse_number("0", 9), 0U);
  EXPECT_EQ(parse_number("009", 9), 9U);
  EXPECT_EQ(parse_number("18446744073709551615", ~std::uint64_t{0}), ~std::uint64_t{0});
  for (const char* text : {"", "10", "-1", "+1", " 1", "1 ", "1x", "0x1", "18446744073709551616"}) {
    EXPECT_EQ(parse_number(text, 9), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace onesum
