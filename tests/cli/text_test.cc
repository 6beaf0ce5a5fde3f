// Sizes, times and tables as people read them.
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

TEST(Quantities, AreReadable) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(1536), "1.50 KiB");
  EXPECT_EQ(format_bytes(std::size_t{8} << 20), "8 MiB");
  EXPECT_EQ(format_bytes(102228128), "97.5 MiB");
  EXPECT_EQ(format_time(85.2e-9), "85.2 ns");
  EXPECT_EQ(format_time(0.99999e-6), "1.00 µs");
  EXPECT_EQ(format_time(145.3e-6), "145 µs");
  EXPECT_EQ(format_time(0.0123), "12.3 ms");
  EXPECT_EQ(format_time(2.5), "2.50 s");
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
