// Which rows are merged, in which order they are added, and that adding them ends in time.
#include "api/row_groups.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "api/add_rows.h"
#include "api/engines.h"
#include "conformance/merged_rows.h"
#include "plan/plan.h"
#include "support/expect_error.h"

namespace onesum {
namespace {

// Whatever order the merges stand for, written out.
std::string expression(std::span<const std::string> names, std::span<const std::uint8_t> merges) {
  std::vector<std::string> stack;
  for (std::size_t i = 0; i < names.size(); ++i) {
    stack.push_back(names[i]);
    for (int m = 0; m < merges[i]; ++m) {
      const std::string right = stack.back();
      stack.pop_back();
      stack.back() = "(" + stack.back() + "+" + right + ")";
    }
  }
  return stack.size() == 1 ? stack.front() : "not one sum";
}

struct Term {
  std::string text;
  Term operator+(const Term& right) const { return {"(" + text + "+" + right.text + ")"}; }
};

TEST(RowGroups, OrderIsTheCanonicalTreeWithoutWhoIsAbsent) {
  std::mt19937_64 random(5);
  for (std::size_t n = 1; n <= 70; ++n) {
    for (int round = 0; round < 30; ++round) {
      // Each replica has row 4 so many times, and row 1 once.
      std::vector<std::vector<std::size_t>> indices(n);
      std::vector<std::string> names;
      std::vector<std::optional<Term>> sums(n);
      for (std::size_t r = 0; r < n; ++r) {
        const std::size_t count = round == 0 ? 1 : random() % 3;
        for (std::size_t k = 0; k < count; ++k) {
          names.push_back(std::to_string(r) + "." + std::to_string(k));
          sums[r] = k == 0 ? Term{names.back()} : *sums[r] + Term{names.back()};
        }
        indices[r].assign(count, 4);
        indices[r].push_back(1);
      }
      const api::RowGroups groups = api::group_rows(indices);
      const std::size_t all = names.size();
      ASSERT_EQ(groups.rows, all == 0 ? std::vector<std::size_t>{1} : std::vector<std::size_t>({1, 4}));
      ASSERT_EQ(groups.first.back(), n + all);
      const std::span<const std::uint8_t> merges(groups.merges);
      ASSERT_TRUE(std::ranges::equal(merges.first(n), plan::canonical_merges(n)));
      if (all == 0) continue;
      ASSERT_EQ(expression(names, merges.subspan(n)), testing::sum_of_present<Term>(sums)->text);
    }
  }
}

TEST(RowGroups, SortsAnyIndex) {
  std::mt19937_64 random(6);
  std::vector<std::vector<std::size_t>> indices(4);
  std::map<std::size_t, std::vector<std::size_t>> positions;
  std::size_t position = 0;
  for (std::vector<std::size_t>& replica : indices) {
    for (int k = 0; k < 1000; ++k) {
      replica.push_back(random() >> (1 + random() % 63));
      positions[replica.back()].push_back(position++);
    }
  }
  const api::RowGroups groups = api::group_rows(indices);
  ASSERT_EQ(groups.rows.size(), positions.size());
  std::size_t row = 0;
  for (const auto& [index, expected] : positions) {
    ASSERT_EQ(groups.rows[row], index);
    const auto begin = groups.positions.begin() + static_cast<std::ptrdiff_t>(groups.first[row]);
    ASSERT_EQ(std::vector<std::size_t>(begin, begin + static_cast<std::ptrdiff_t>(expected.size())),
              expected);
    ++row;
  }
}

TEST(AddRows, StopsAtTheDeadline) {
  const std::vector<std::vector<std::size_t>> indices{{0, 0}};
  const api::RowGroups groups = api::group_rows(indices);
  const std::vector<float> values{1, 2};
  float sum = 0;
  std::byte* const to = reinterpret_cast<std::byte*>(&sum);
  const api::RowSums sums{.groups = groups,
                          .form = {},
                          .row_elements = 1,
                          .values = reinterpret_cast<const std::byte*>(values.data()),
                          .destinations = {&to, 1}};
  testing::expect_error([&] { api::add_rows(sums, api::host_engine(), now()); }, ErrorCode::kDeadlineExceeded,
                        {"timeout", "merged"});
  EXPECT_EQ(sum, 0);
  api::add_rows(sums, api::host_engine(), now() + std::chrono::hours(1));
  EXPECT_EQ(sum, 3);
}

}  // namespace
}  // namespace onesum
