// Adds up rows of one index, as row_groups.h orders them.
#pragma once

#include <cstddef>
#include <span>

#include "api/row_groups.h"
#include "base/clock.h"
#include "engine/device.h"

namespace onesum::api {

struct RowSums {
  const RowGroups& groups;
  engine::ReduceForm form;  // types and divisor of every sum
  std::size_t row_elements = 0;
  const std::byte* values = nullptr;         // all replicas' rows, one after the other
  std::span<std::byte* const> destinations;  // groups.rows.size() rows each; none overlaps the values
};

// Throws deadline_exceeded, with the destinations incomplete, if it is not done by then.
void add_rows(const RowSums& sums, engine::ThreadedEngine& engine, Clock::time_point deadline);

}  // namespace onesum::api
