// For tests: plans broken on purpose, each with what verify says of it. A table for every subject, in a file
// of its own; verify_refuses_test.cc goes through all of them.
#pragma once

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "plan/refusal.h"
#include "plan/sample_plans.h"
#include "plan/text.h"

namespace onesum::plan {

struct Broken {
  std::string name;
  std::string text;
  std::string find;
  std::string replace;
  std::vector<std::string> fragments;  // of the message
};

std::vector<Broken> broken_channels();
std::vector<Broken> broken_contents();
std::vector<Broken> broken_order();
std::vector<Broken> broken_rules();
std::vector<Broken> broken_counts();
std::vector<Broken> broken_halves();

// The counts of rank 0 in a lane of their own, which its first lane waits for, or does not.
std::string counts_apart(const std::string& instead);

// What verify, or the parser, says of a text in which something is replaced.
inline std::string refusal(std::string text, const std::string& find, const std::string& replace) {
  const std::size_t at = text.find(find);
  EXPECT_NE(at, std::string::npos) << find << " in\n" << text;
  if (at == std::string::npos) return "";
  text.replace(at, find.size(), replace);
  try {
    return refusal(parse_text(text));
  } catch (const Error& error) {
    return error.what();
  }
}

// Sample plans to break.
namespace text_of {

// One worker, four replicas in float16, in two lanes.
inline std::string half() {
  return to_text(sample::two_lanes(sample::types_of(ReduceOp::kMean, DType::kFloat16)));
}
inline std::string ring() {
  return to_text(sample::ring(4, sample::types_of(ReduceOp::kMean, DType::kFloat32)));
}
inline std::string direct() {
  return to_text(sample::direct(3, sample::types_of(ReduceOp::kSum, DType::kFloat32)));
}
inline std::string gather() { return to_text(sample::ring_gather(3, Element::kFloat32)); }
inline std::string scatter() {
  return to_text(sample::scatter(3, sample::types_of(ReduceOp::kSum, DType::kFloat32)));
}
inline std::string all_gather() { return to_text(sample::ring_all_gather(3, Element::kFloat32)); }
inline std::string integers() {
  return to_text(sample::one_device_over_temp(3, sample::types_of(ReduceOp::kMean, DType::kInt32)));
}
inline std::string function() {
  return to_text(sample::user_function(2, sample::types_of(ReduceOp::kSum, DType::kFloat32)));
}

}  // namespace text_of

}  // namespace onesum::plan
