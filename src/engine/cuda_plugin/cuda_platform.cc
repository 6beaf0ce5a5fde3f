// The plug-in's one door.
#include <memory>
#include <mutex>
#include <vector>

#include <onesum/error.h>
#include <onesum/version.h>

#include "engine/cuda/cuda_engine.h"
#include "engine/cuda/cuda_error.h"
#include "engine/gpu.h"
#include "engine/nccl/nccl_engine.h"

namespace onesum::engine::cuda {
namespace {

constexpr std::size_t kPoolBytes = std::size_t{1} << 30;

std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

GpuVersions find_versions() {
  int runtime = 0;
  int driver = 0;
  cudaRuntimeGetVersion(&runtime);
  cudaDriverGetVersion(&driver);
  return {version_text(runtime), driver == 0 ? std::string() : version_text(driver)};
}

class CudaPlatform final : public GpuPlatform {
 public:
  CudaPlatform(int devices, std::size_t pool_bytes)
      : pool_bytes_(pool_bytes), staging_(pool_bytes), devices_(static_cast<std::size_t>(devices)) {}

  int devices() const noexcept override { return static_cast<int>(devices_.size()); }

  QueuedEngine& device(int index) override { return engine(index); }

  NativeEngine& native() override {
    const std::scoped_lock lock(mutex_);
    if (native_ == nullptr) {
      native_ = nccl::make_nccl_engine([this](int index) -> CudaEngine& { return engine(index); });
    }
    return *native_;
  }

  GpuTraits traits(int index) const override {
    cudaDeviceProp properties;
    require(cudaGetDeviceProperties(&properties, index), index, "asking for its properties");
    return {properties.name, std::to_string(properties.major) + "." + std::to_string(properties.minor),
            properties.totalGlobalMem};
  }
  GpuVersions versions() const override { return find_versions(); }

 private:
  CudaEngine& engine(int index) {
    const std::scoped_lock lock(engines_mutex_);
    std::unique_ptr<CudaEngine>& its = devices_.at(static_cast<std::size_t>(index));
    if (its == nullptr) its = std::make_unique<CudaEngine>(index, pool_bytes_, staging_);
    return *its;
  }

  std::size_t pool_bytes_;
  Staging staging_;
  std::mutex engines_mutex_;
  std::vector<std::unique_ptr<CudaEngine>> devices_;
  std::mutex mutex_;
  std::unique_ptr<NativeEngine> native_;
};

}  // namespace
}  // namespace onesum::engine::cuda

using onesum::engine::GpuOptions;
using onesum::engine::GpuPlatform;

extern "C" __attribute__((visibility("default"))) GpuPlatform* onesum_open_gpus(const char* version,
                                                                                const GpuOptions& options,
                                                                                std::string& reason) {
  namespace cuda = onesum::engine::cuda;
  if (std::string(version) != ONESUM_VERSION) {
    reason = "the plug-in for GPUs is of onesum " ONESUM_VERSION ", the library of " + std::string(version);
    return nullptr;
  }
  int devices = 0;
  const cudaError_t error = cudaGetDeviceCount(&devices);
  if (error != cudaSuccess || devices == 0) {
    cudaGetLastError();
    reason = to_string(cuda::find_versions()) + ": " +
             (error == cudaSuccess
                  ? std::string("no GPU")
                  : std::string(cudaGetErrorString(error)) + " (" + cudaGetErrorName(error) + ")");
    return nullptr;
  }
  return new cuda::CudaPlatform(devices, options.pool_bytes.value_or(cuda::kPoolBytes));
}
