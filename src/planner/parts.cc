#include "planner/parts.h"

#include <numeric>
#include <string>
#include <utility>

#include <fmt/format.h>

#include <onesum/error.h>

namespace onesum::planner {
namespace {

template <class... Args>
[[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) {
  throw Error(ErrorCode::kInvalidArgument, fmt::format(format, std::forward<Args>(args)...));
}

std::vector<std::uint32_t> all_of(const std::vector<ComponentInfo>& components) {
  std::vector<std::uint32_t> numbers(components.size());
  std::iota(numbers.begin(), numbers.end(), 0U);
  return numbers;
}

std::size_t elements_of(const ComponentInfo& component) { return component.tensor.shape.elements(); }

std::size_t elements_of(const std::vector<ComponentInfo>& components) {
  std::size_t sum = 0;
  for (const ComponentInfo& component : components) sum += elements_of(component);
  return sum;
}

void check_size_of_result(const PairInfo& pair, std::size_t result, std::size_t expected,
                          const std::string& name) {
  const ComponentInfo& component = pair.results[result];
  if (elements_of(component) == expected) return;
  refuse("{}: the result on {} has {} elements; expected {}, as many as come to it", name,
         component.tensor.device.to_string(), elements_of(component), expected);
}

// One after the other to the results, from all replicas alike.
std::vector<Part> shared_out(const PairInfo& pair, const std::string& name) {
  const std::size_t whole = elements_of(pair.replicas.front());
  if (elements_of(pair.results) != whole) {
    refuse("{}: the results have {} elements together, the value has {}; all of it is shared out", name,
           elements_of(pair.results), whole);
  }
  std::vector<Part> parts;
  std::size_t offset = 0;
  for (std::size_t d = 0; d < pair.results.size(); ++d) {
    const std::size_t elements = elements_of(pair.results[d]);
    parts.push_back({all_of(pair.replicas), {static_cast<std::uint32_t>(d)}, elements, offset, 0});
    offset += elements;
  }
  return parts;
}

std::vector<Part> collected(const PairInfo& pair, const std::string& name) {
  std::vector<Part> parts;
  std::size_t offset = 0;
  for (std::size_t r = 0; r < pair.replicas.size(); ++r) {
    const std::size_t elements = elements_of(pair.replicas[r]);
    parts.push_back({{static_cast<std::uint32_t>(r)}, all_of(pair.results), elements, 0, offset});
    offset += elements;
  }
  for (std::size_t d = 0; d < pair.results.size(); ++d) check_size_of_result(pair, d, offset, name);
  return parts;
}

std::vector<std::size_t> split_of(const PairInfo& pair, std::size_t replica, const std::string& name) {
  const std::size_t whole = elements_of(pair.replicas[replica]);
  const std::size_t results = pair.results.size();
  const std::string device = pair.replicas[replica].tensor.device.to_string();
  if (pair.splits.empty() || pair.splits[replica].empty()) {
    if (whole % results != 0) {
      refuse("{}: the replica on {} has {} elements, which {} results cannot share equally; give splits",
             name, device, whole, results);
    }
    return std::vector<std::size_t>(results, whole / results);
  }
  const std::vector<std::size_t>& split = pair.splits[replica];
  for (const std::size_t part : split) {  // so that their sum is what it says
    if (part > whole)
      refuse("{}: the replica on {} has {} elements, and a part of {}", name, device, whole, part);
  }
  const std::size_t sum = std::accumulate(split.begin(), split.end(), std::size_t{0});
  if (split.size() != results || sum != whole) {
    refuse("{}: the replica on {} is split in {} parts of {} elements together; expected {} parts of {}",
           name, device, split.size(), sum, results, whole);
  }
  return split;
}

std::vector<Part> exchanged(const PairInfo& pair, const std::string& name) {
  std::vector<Part> parts;
  std::vector<std::size_t> filled(pair.results.size());
  for (std::size_t r = 0; r < pair.replicas.size(); ++r) {
    std::size_t offset = 0;
    const std::vector<std::size_t> split = split_of(pair, r, name);
    for (std::size_t d = 0; d < split.size(); ++d) {
      parts.push_back(
          {{static_cast<std::uint32_t>(r)}, {static_cast<std::uint32_t>(d)}, split[d], offset, filled[d]});
      offset += split[d];
      filled[d] += split[d];
    }
  }
  for (std::size_t d = 0; d < filled.size(); ++d) check_size_of_result(pair, d, filled[d], name);
  return parts;
}

}  // namespace

std::vector<Part> parts_of(CallKind kind, const PairInfo& pair, const std::string& name) {
  switch (kind) {
    case CallKind::kAllGather:
      return collected(pair, name);
    case CallKind::kAllToAll:
      return exchanged(pair, name);
    default:
      return shared_out(pair, name);
  }
}

}  // namespace onesum::planner
