#include "gpu/callers.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include <gtest/gtest.h>

namespace onesum::testing {

Callers::Callers(std::size_t devices, StreamKind kind) {
  for (std::size_t d = 0; d < devices; ++d) {
    streams.push_back(std::make_unique<CallerStream>(static_cast<int>(d), kind));
    memory.push_back(std::make_unique<CallerMemory>(
        static_cast<int>(d), std::vector<float>(kElements, static_cast<float>(d + 1))));
  }
}

Callers::~Callers() {
  for (const auto& stream : streams) stream->synchronize();
}

PerReplica Callers::value() const {
  std::vector<Tensor> tensors;
  for (std::size_t d = 0; d < streams.size(); ++d) tensors.push_back(memory[d]->tensor(*streams[d]));
  return PerReplica(std::move(tensors));
}

void Callers::fill() {
  for (std::size_t d = 0; d < streams.size(); ++d) memory[d]->fill(*streams[d]);
}

std::vector<float> Callers::read() {
  std::vector<float> found;
  for (std::size_t d = 0; d < streams.size(); ++d) {
    memory[d]->read(*streams[d]);
    streams[d]->synchronize();
    const std::vector<float> contents = memory[d]->contents();
    const bool are_equal = std::ranges::count(contents, contents.front()) == std::ssize(contents);
    found.push_back(are_equal ? contents.front() : -1);
  }
  return found;
}

void Callers::expect(float expected) { EXPECT_EQ(read(), std::vector<float>(streams.size(), expected)); }

}  // namespace onesum::testing
