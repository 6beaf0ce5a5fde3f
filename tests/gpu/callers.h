// A caller with a replica and a stream on each of some GPUs, who waits for nothing but its own streams.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include <onesum/values.h>

#include "gpu/cuda_calls.h"

namespace onesum::testing {

struct Callers {
  static constexpr std::size_t kElements = 5000;

  // Replica d, on GPU:d, holds d + 1 everywhere, once filled.
  explicit Callers(std::size_t devices, StreamKind kind = StreamKind::kOwn);
  ~Callers();  // when everything on its streams is done
  Callers(const Callers&) = delete;
  Callers& operator=(const Callers&) = delete;

  PerReplica value() const;
  void fill();
  // What every replica holds when its stream comes to it; -1 if its elements differ.
  std::vector<float> read();
  void expect(float expected);

  std::vector<std::unique_ptr<CallerStream>> streams;
  std::vector<std::unique_ptr<CallerMemory>> memory;
};

}  // namespace onesum::testing
