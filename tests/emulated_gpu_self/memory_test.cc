// Device memory, pinned memory and registered memory, and who may not touch them.
#include <cmath>
#include <csignal>
#include <cstring>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "emulated_gpu_self/child.h"

namespace onesum::testing {
namespace {

using ::testing::HasSubstr;

TEST(EmulatedMemory, FreshDeviceMemoryIsNaN) {
  const Ended ended = in_child({}, [] {
    const DeviceOwner<float> device(1000);
    std::vector<float> values(1000);
    check(cudaMemcpy(values.data(), device.get, 4000, cudaMemcpyDeviceToHost));
    for (const float value : values) {
      if (!std::isnan(value)) return "a number";
    }
    return "NaN";
  });
  EXPECT_EQ(ended.text, "NaN");
  EXPECT_EQ(ended.errors, "");
}

TEST(EmulatedMemory, TheHostCannotTouchDeviceMemory) {
  const Ended ended = in_child({}, [] {
    const DeviceOwner<float> device(10, 1);
    *const_cast<volatile float*>(device.get) = 1;
    return "written";
  });
  EXPECT_EQ(ended.signal, SIGABRT);
  EXPECT_THAT(ended.errors, HasSubstr("emulated GPU: the host writes 0x"));
  EXPECT_THAT(ended.errors, HasSubstr("device memory of device 1"));
}

TEST(EmulatedMemory, AnOrdinaryFaultStaysOne) {
  const Ended ended = in_child({}, [] {
    const DeviceOwner<float> device(10);
    volatile int* nowhere = nullptr;
    *nowhere = 1;
    return "written";
  });
  EXPECT_NE(ended.text, "written");
  EXPECT_THAT(ended.errors, ::testing::Not(HasSubstr("emulated GPU: the host")));
}

TEST(EmulatedMemory, ThereIsAsMuchAsSet) {
  const Ended ended = in_child({{"EMULATED_GPU_MEMORY", "100000"}}, [] {
    void* first = nullptr;
    void* second = nullptr;
    check(cudaMalloc(&first, 60000));
    std::string result = cudaGetErrorName(cudaMalloc(&second, 60000));
    std::size_t free = 0;
    std::size_t total = 0;
    check(cudaMemGetInfo(&free, &total));
    result += " " + std::to_string(free) + " " + std::to_string(total);
    check(cudaFree(first));
    check(cudaMalloc(&second, 60000));
    check(cudaFree(second));
    check(cudaFree(nullptr));
    return result;
  });
  EXPECT_EQ(ended.text, "cudaErrorMemoryAllocation 40000 100000");
  EXPECT_EQ(ended.errors, "");
}

TEST(EmulatedMemory, WrongFreesAreViolations) {
  const Ended ended = in_child(counting(), [] {
    char* memory = nullptr;
    check(cudaMalloc(reinterpret_cast<void**>(&memory), 100));
    int local = 0;
    std::string result = cudaGetErrorName(cudaFree(memory + 4));
    result += std::string(" ") + cudaGetErrorName(cudaFreeHost(memory));
    result += std::string(" ") + cudaGetErrorName(cudaFree(&local));
    check(cudaFree(memory));
    result += std::string(" ") + cudaGetErrorName(cudaFree(memory));
    return result + " " + std::to_string(emulated_gpu_violations()) + " " + emulated_gpu_last_violation();
  });
  EXPECT_THAT(ended.text, HasSubstr("cudaErrorInvalidValue cudaErrorInvalidValue cudaErrorInvalidValue "
                                    "cudaErrorInvalidValue 4 cudaFree of 0x"));
  EXPECT_THAT(ended.text, HasSubstr("was freed: device memory of device 0"));
}

TEST(EmulatedMemory, AViolationAbortsByDefault) {
  const Ended ended = in_child({}, [] {
    int local = 0;
    cudaFree(&local);
    return "survived";
  });
  EXPECT_EQ(ended.signal, SIGABRT);
  EXPECT_THAT(ended.errors, HasSubstr("emulated GPU: cudaFree of 0x"));
}

TEST(EmulatedMemory, FreedMemoryIsKnownAsFreed) {
  const Ended ended = in_child({}, [] {
    PinnedOwner<int> pinned(10);
    *pinned.get = 1;
    check(cudaFreeHost(pinned.get));
    *const_cast<volatile int*>(pinned.get) = 2;
    return "written";
  });
  EXPECT_EQ(ended.signal, SIGABRT);
  EXPECT_THAT(ended.errors, HasSubstr("emulated GPU: the host writes 0x"));
  EXPECT_THAT(ended.errors, HasSubstr("which was freed: pinned memory"));
}

TEST(EmulatedMemory, PointersTellWhatTheyAre) {
  const Ended ended = in_child({}, [] {
    const DeviceOwner<char> device(10, 1);
    const PinnedOwner<char> pinned(10);
    std::vector<char> registered(10);
    check(cudaHostRegister(registered.data(), 10, cudaHostRegisterDefault));
    char pageable = 0;
    std::string result;
    for (const char* address : {device.get + 3, pinned.get + 3, registered.data() + 3, &pageable}) {
      cudaPointerAttributes attributes;
      check(cudaPointerGetAttributes(&attributes, address));
      result += std::to_string(attributes.type) + ":" + std::to_string(attributes.device) + " ";
    }
    result += cudaGetErrorName(cudaHostRegister(registered.data() + 5, 10, cudaHostRegisterDefault));
    check(cudaHostUnregister(registered.data()));
    return result;
  });
  EXPECT_EQ(ended.text, "2:1 1:0 1:0 0:-2 cudaErrorHostMemoryAlreadyRegistered");
  EXPECT_EQ(ended.errors, "");
}

TEST(EmulatedMemory, WhatIsLeftIsPrintedAtTheExit) {
  const auto leak = [] {
    void* memory = nullptr;
    check(cudaMalloc(&memory, 123));
    check(cudaHostAlloc(&memory, 45, 0));
    cudaStream_t stream;
    check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    cudaEvent_t event;
    check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    EmulatedGpuLive live;
    emulated_gpu_live(&live);
    return std::to_string(live.device_allocations) + std::to_string(live.pinned_bytes) +
           std::to_string(live.streams) + std::to_string(live.events);
  };
  const Ended printed = in_child({}, leak);
  EXPECT_EQ(printed.text, "14511");
  EXPECT_EQ(printed.code, 0);
  EXPECT_THAT(printed.errors,
              HasSubstr("left at the exit: 1 device allocations (123 bytes), 1 pinned allocations "
                        "(45 bytes), 0 registered ranges, 1 streams, 1 events"));
  EXPECT_EQ(in_child({{"EMULATED_GPU_LEAKS", "fail"}}, leak).code, 86);
}

}  // namespace
}  // namespace onesum::testing
