#include "cluster/node_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/expect_error.h"

namespace onesum::cluster {
namespace {

using ::testing::ElementsAre;
using testing::expect_invalid;

constexpr std::size_t kMost = 1000;

TEST(NodeList, NamesNodesInOrder) {
  EXPECT_THAT(expand_node_list("node7", kMost), ElementsAre("node7"));
  EXPECT_THAT(expand_node_list("b,a.example.org,c-1", kMost), ElementsAre("b", "a.example.org", "c-1"));
  EXPECT_THAT(expand_node_list("a[01-03,7],b-[1-2]-x[5-6]", kMost),
              ElementsAre("a01", "a02", "a03", "a7", "b-1-x5", "b-1-x6", "b-2-x5", "b-2-x6"));
  EXPECT_THAT(expand_node_list("[3]", kMost), ElementsAre("3"));
  EXPECT_THAT(expand_node_list("n[2]x", kMost), ElementsAre("n2x"));
  EXPECT_THAT(expand_node_list("n[2-2,1]", kMost), ElementsAre("n2", "n1"));
}

TEST(NodeList, KeepsZerosInFront) {
  EXPECT_THAT(expand_node_list("a[08-11]", kMost), ElementsAre("a08", "a09", "a10", "a11"));
  EXPECT_THAT(expand_node_list("a[98-101]", kMost), ElementsAre("a98", "a99", "a100", "a101"));
  EXPECT_THAT(expand_node_list("a[000,1]", kMost), ElementsAre("a000", "a1"));
}

TEST(NodeList, RefusesWhatIsNone) {
  for (const char* text : {"",       ",",    "a,",    ",a",       "a,,b", "a[",    "a]",           "a[]",
                           "a[1",    "a[1-", "a[1-]", "a[-1]",    "a[x]", "a[1,]", "a[1;2]",       "a[1]]",
                           "a[[1]]", "a b",  "a\n",   "a[1-2-3]", "-a",   "a/b",   "a[1234567890]"}) {
    expect_invalid([&] { expand_node_list(text, kMost); }, {"expected"});
  }
  expect_invalid([] { expand_node_list("a[3-1]", kMost); }, {"goes up"});
  expect_invalid([] { expand_node_list("a[1", kMost); }, {"']'", "at the end"});
  expect_invalid([] { expand_node_list("a[1x]", kMost); }, {"before \"x]\""});
}

TEST(NodeList, IsBounded) {
  EXPECT_EQ(expand_node_list("a[1-1000]", kMost).size(), kMost);
  EXPECT_EQ(expand_node_list("a[0-9][0-9][0-9]", kMost).size(), kMost);
  for (const char* text : {"a[1-1001]", "a[0-999999999]", "a[1-999],b,c", "a[0-9][0-9][0-9][0-9]",
                           "a[0-99999999][0-99999999]"}) {
    expect_invalid([&] { expand_node_list(text, kMost); }, {"at most", "nodes"});
  }
}

TEST(TasksOnNode, CountsRepetitions) {
  EXPECT_EQ(tasks_on_node("4", 0), 4);
  EXPECT_EQ(tasks_on_node("2(x3),1", 0), 2);
  EXPECT_EQ(tasks_on_node("2(x3),1", 2), 2);
  EXPECT_EQ(tasks_on_node("2(x3),1", 3), 1);
  expect_invalid([] { tasks_on_node("2(x3),1", 4); }, {"node 4"});
  for (const char* text : {"", "x", "2(", "2(x", "2(x3", "2(3)", "2,", "2 "}) {
    expect_invalid([&] { tasks_on_node(text, 0); }, {"expected"});
  }
}

}  // namespace
}  // namespace onesum::cluster
