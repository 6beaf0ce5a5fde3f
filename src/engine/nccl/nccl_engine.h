// Collectives of NVIDIA's library, NCCL, between GPUs.
#pragma once

#include <functional>
#include <memory>

#include "engine/cuda/cuda_engine.h"
#include "engine/native.h"

namespace onesum::engine::nccl {

// `device` gives the engine of a GPU of this process, by its index; the engines outlive all communicators.
// Throws unavailable, saying why, if the library cannot be used.
std::unique_ptr<NativeEngine> make_nccl_engine(std::function<cuda::CudaEngine&(int index)> device);

}  // namespace onesum::engine::nccl
