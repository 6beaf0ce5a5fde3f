// The GPUs of this process. Whatever knows about them is in a library of its own, which is opened when
// somebody asks for a GPU: this one runs where there is none.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "engine/device.h"
#include "engine/native.h"

namespace onesum::engine {

// Of one GPU, for people.
struct GpuTraits {
  std::string name;        // "NVIDIA H100 80GB HBM3"
  std::string capability;  // to compute, as NVIDIA counts it: "9.0"
  std::size_t memory_bytes = 0;
};

// Of the software below the plug-in, for people.
struct GpuVersions {
  std::string runtime;  // of CUDA: "13.0"
  std::string driver;   // the latest runtime that it serves; empty: there is no driver
};

// "CUDA 13.0, driver for 13.0"
inline std::string to_string(const GpuVersions& versions) {
  return "CUDA " + versions.runtime +
         (versions.driver.empty() ? ", no driver" : ", driver for " + versions.driver);
}

// Implemented by the plug-in. Its engines live as long as it.
class GpuPlatform {
 public:
  GpuPlatform() = default;
  virtual ~GpuPlatform() = default;
  GpuPlatform(const GpuPlatform&) = delete;
  GpuPlatform& operator=(const GpuPlatform&) = delete;

  virtual int devices() const noexcept = 0;
  // Throws what stands in the way of using it.
  virtual QueuedEngine& device(int index) = 0;
  // Throws unavailable, saying why, if the library for collectives cannot be used.
  virtual NativeEngine& native() = 0;

  // Takes no memory on the device. Throws internal if it does not answer.
  virtual GpuTraits traits(int index) const = 0;
  virtual GpuVersions versions() const = 0;
};

struct GpuOptions {
  std::optional<std::string> plugin{};      // where it is; absent: beside this library
  std::optional<std::size_t> pool_bytes{};  // of freed memory kept for reuse, on each device
};

// What came of looking for GPUs: a platform with at least one device, or the reason why there is none.
struct GpuSearch {
  std::unique_ptr<GpuPlatform> platform;
  std::string reason;
  std::string plugin;  // the file that was opened; none: empty
};

// Opens the plug-in, which is never closed again. Throws nothing but what is wrong with the options.
GpuSearch find_gpus(const GpuOptions& options);

// The one function of a plug-in, "onesum_open_gpus". It says in `reason` why it returns nothing. `version`:
// of the library that asks; both are built together.
using OpenGpus = GpuPlatform* (*)(const char* version, const GpuOptions& options, std::string& reason);
inline constexpr char kOpenGpus[] = "onesum_open_gpus";

}  // namespace onesum::engine
