// Launches of kernels, which run their twins.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "emulated_gpu_self/child.h"

// As nvcc's code does.
extern "C" {
void** __cudaRegisterFatBinary(void* binary);
void __cudaRegisterFatBinaryEnd(void** handle);
void __cudaUnregisterFatBinary(void** handle);
void __cudaRegisterFunction(void** handle, const char* host_function, char* device_function,
                            const char* device_name, int thread_limit, uint3* thread_id, uint3* block_id,
                            dim3* block, dim3* grid, int* warp_size);
cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* function);
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** args,
                               std::size_t shared_bytes, cudaStream_t stream);
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, std::size_t shared_bytes, CUstream_st* stream);
cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, std::size_t* shared_bytes, void* stream);
}

namespace onesum::testing {
namespace {

using ::testing::HasSubstr;

// Their addresses stand for kernels.
char add_number;
char unheard_of;

class Module {
 public:
  Module() : handle_(__cudaRegisterFatBinary(nullptr)) {
    char name[] = "add_number";
    char other[] = "unheard_of";
    __cudaRegisterFunction(handle_, &add_number, name, name, -1, nullptr, nullptr, nullptr, nullptr, nullptr);
    __cudaRegisterFunction(handle_, &unheard_of, other, other, -1, nullptr, nullptr, nullptr, nullptr,
                           nullptr);
    __cudaRegisterFatBinaryEnd(handle_);
  }
  ~Module() { __cudaUnregisterFatBinary(handle_); }
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

 private:
  void** handle_;
};

cudaError_t add(const void* function, float* data, int count, float number, cudaStream_t stream) {
  void* args[] = {&data, &count, &number};
  return cudaLaunchKernel(function, dim3(2), dim3(64), args, 0, stream);
}

TEST(EmulatedKernels, ATwinRuns) {
  const Ended ended = in_child({}, [] {
    const Module module;
    const DeviceOwner<float> device(100);
    const StreamOwner stream;
    std::vector<float> values(100, 1.0F);
    check(cudaMemcpyAsync(device.get, values.data(), 400, cudaMemcpyHostToDevice, stream.get));
    check(add(&add_number, device.get, 100, 0.5F, stream.get));
    float* data = device.get;
    int count = 99;
    float number = 2;
    void* args[] = {&data, &count, &number};
    // As <<<>>> does.
    cudaKernel_t kernel;
    check(__cudaGetKernel(&kernel, &add_number));
    __cudaPushCallConfiguration(dim3(1), dim3(128), 0, stream.get);
    dim3 grid;
    dim3 block;
    std::size_t shared_bytes = 1;
    cudaStream_t popped = nullptr;
    check(__cudaPopCallConfiguration(&grid, &block, &shared_bytes, &popped));
    check(__cudaLaunchKernel(kernel, grid, block, args, shared_bytes, popped));
    cudaLaunchConfig_t config{};
    config.gridDim = dim3(1);
    config.blockDim = dim3(1);
    config.stream = stream.get;
    check(cudaLaunchKernelExC(&config, &add_number, args));
    check(cudaMemcpyAsync(values.data(), device.get, 400, cudaMemcpyDeviceToHost, stream.get));
    cudaFuncAttributes attributes;
    check(cudaFuncGetAttributes(&attributes, &add_number));
    return std::to_string(values[0]) + " " + std::to_string(values[98]) + " " + std::to_string(values[99]) +
           " " + std::to_string(attributes.maxThreadsPerBlock) + " " +
           std::to_string(emulated_gpu_operations("launch"));
  });
  EXPECT_EQ(ended.text, "5.500000 3.500000 1.500000 1024 3");
  EXPECT_EQ(ended.errors, "");
}

TEST(EmulatedKernels, WrongLaunchesAreViolations) {
  const Ended ended = in_child(counting(), [] {
    const Module module;
    const DeviceOwner<float> device(100);
    const StreamOwner stream(0);
    const StreamOwner other(1);
    void* none[] = {nullptr};
    char stranger = 0;
    std::string result;
    for (const cudaError_t error :
         {add(&add_number, device.get, 100, 1, other.get),  // device 0 is current
          add(&stranger, device.get, 100, 1, stream.get), add(&unheard_of, device.get, 100, 1, stream.get),
          cudaLaunchKernel(&add_number, dim3(1), dim3(2000), none, 0, stream.get)}) {
      result += std::to_string(error) + " ";
    }
    return result + std::to_string(emulated_gpu_violations());
  });
  EXPECT_EQ(ended.text, "400 98 98 9 4");
  EXPECT_THAT(ended.errors, HasSubstr("launch of unheard_of, which has no twin"));
}

TEST(EmulatedKernels, MemoryOutOfReachEndsTheContext) {
  const auto reach = [](std::size_t count, int device) {
    return in_child(counting(),
                    [=] {
                      const Module module;
                      const DeviceOwner<float> memory(100, device);
                      const StreamOwner stream(0);
                      check(add(&add_number, memory.get, static_cast<int>(count), 1, stream.get));
                      return std::to_string(cudaStreamSynchronize(stream.get)) + " " +
                             std::to_string(emulated_gpu_violations()) + " " + emulated_gpu_last_violation();
                    })
        .text;
  };
  EXPECT_THAT(reach(101, 0), HasSubstr("700 1 kernel add_number uses"));
  EXPECT_THAT(reach(100, 1), HasSubstr("to which device 0 has no access"));
  EXPECT_EQ(reach(100, 0), "0 0 ");
}

TEST(EmulatedKernels, FootprintsRace) {
  const Ended ended = in_child(counting(), [] {
    const Module module;
    const DeviceOwner<float> device(100);
    const StreamOwner first;
    const StreamOwner second;
    check(add(&add_number, device.get, 50, 1, first.get));
    check(add(&add_number, device.get + 50, 50, 1, second.get));
    const std::size_t none = emulated_gpu_violations();
    check(add(&add_number, device.get + 49, 1, 1, second.get));
    check(cudaDeviceSynchronize());
    return std::to_string(none) + " " + std::to_string(emulated_gpu_violations()) + " " +
           emulated_gpu_last_violation();
  });
  EXPECT_THAT(ended.text, HasSubstr("0 1 race"));
  EXPECT_THAT(ended.text, HasSubstr("launch of add_number (operation 1 of stream 1"));
}

}  // namespace
}  // namespace onesum::testing
