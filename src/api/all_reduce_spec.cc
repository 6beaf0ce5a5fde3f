#include <utility>

#include <onesum/all_reduce_spec.h>

#include "planner/spec.h"

namespace onesum {

AllReduceSpecs::AllReduceSpecs(std::string_view text) : specs_(planner::parse_specs(text)) {}

AllReduceSpecs::AllReduceSpecs(AllReduceSpec spec) : specs_(planner::valid_specs({std::move(spec)})) {}

AllReduceSpecs::AllReduceSpecs(std::initializer_list<AllReduceSpec> specs)
    : specs_(planner::valid_specs({specs.begin(), specs.end()})) {}

AllReduceSpecs::AllReduceSpecs(std::vector<AllReduceSpec> specs)
    : specs_(planner::valid_specs(std::move(specs))) {}

std::string AllReduceSpecs::to_string() const { return planner::text_of_specs(specs_); }

}  // namespace onesum
