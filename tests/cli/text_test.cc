// Sizes and times as people write them, and tables as they read them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/quantities.h"
#include "cli/table.h"
#include "cli/usage.h"

namespace onesum::cli {
namespace {

using ::testing::ElementsAre;

TEST(Quantities, SizesHaveFactorsOf1024) {
  EXPECT_EQ(parse_size("--bytes", "4"), 4U);
  EXPECT_EQ(parse_size("--bytes", "64k"), 65536U);
  EXPECT_THAT(parse_size_list("--sizes", "4,1k,1M,2g"), ElementsAre(4U, 1024U, 1048576U, 2147483648U));
  for (const char* text :
       {"", "k", "1kk", "1.5M", "-1", "+1", " 1", "1 ", "1,", "0x10", "18446744073709551616"}) {
    EXPECT_THROW(parse_size_list("--sizes", text), UsageError) << text;
  }
}

TEST(Quantities, CountsAndSecondsHaveLimits) {
  EXPECT_EQ(parse_count("--devices", "7", 1, 8), 7U);
  for (const char* text : {"", "0", "9", "x", "-1", "1e2"}) {
    EXPECT_THROW(parse_count("--devices", text, 1, 8), UsageError) << text;
  }
  EXPECT_DOUBLE_EQ(parse_seconds("--budget", "0.25"), 0.25);
  for (const char* text : {"", "0", "-1", "inf", "nan", "1s", "1e99"}) {
    EXPECT_THROW(parse_seconds("--budget", text), UsageError) << text;
  }
}

TEST(Table, AlignsWhatPeopleSee) {
  const std::vector<Column> columns = {{"name", 0, true}, {"time", 0}};
  const std::vector<std::vector<std::string>> rows = {{"a", "1.00 µs"}, {"longer", "12 s"}};
  EXPECT_EQ(table_of(columns, rows),
            "name       time\n"
            "a       1.00 µs\n"
            "longer     12 s\n");
}

}  // namespace
}  // namespace onesum::cli
