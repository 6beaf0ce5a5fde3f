// Failures on purpose.
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "emulated_gpu_self/child.h"

namespace onesum::testing {
namespace {

TEST(EmulatedFailures, TheCallAfterTheNextNFailsOnce) {
  const Ended ended = in_child({{"EMULATED_GPU_FAIL", "malloc:2,host_alloc:0:46"}}, [] {
    std::string result;
    for (int turn = 0; turn < 4; ++turn) {
      void* memory = nullptr;
      result += std::to_string(cudaMalloc(&memory, 8)) + " ";
      cudaFree(memory);
    }
    for (int turn = 0; turn < 2; ++turn) {
      void* memory = nullptr;
      result += std::to_string(cudaHostAlloc(&memory, 8, 0)) + " ";
      cudaFreeHost(memory);
    }
    return result;
  });
  EXPECT_EQ(ended.text, "0 0 2 0 46 0 ");
}

TEST(EmulatedFailures, EveryKindOfCall) {
  const Ended ended = in_child({}, [] {
    const DeviceOwner<char> device(8);
    const StreamOwner stream;
    const EventOwner event;
    std::string result;
    const auto fail = [&](const char* kind, const auto& call) {
      if (!emulated_gpu_fail(kind, 0, 0)) return;
      result += std::to_string(call()) + " ";
    };
    cudaStream_t no_stream;
    cudaEvent_t no_event;
    fail("stream_create", [&] { return cudaStreamCreateWithFlags(&no_stream, cudaStreamNonBlocking); });
    fail("event_create", [&] { return cudaEventCreateWithFlags(&no_event, cudaEventDisableTiming); });
    fail("event_record", [&] { return cudaEventRecord(event.get, stream.get); });
    fail("no such kind", [] { return cudaErrorUnknown; });
    return result;
  });
  EXPECT_EQ(ended.text, "2 2 400 ");
}

TEST(EmulatedFailures, ACopyThatFailsLaterEndsTheContext) {
  const Ended ended = in_child({}, [] {
    const DeviceOwner<char> device(8);
    const DeviceOwner<char> elsewhere(8, 1);
    const StreamOwner stream(0);
    const StreamOwner other(1);
    const EventOwner event;
    check(cudaEventRecord(event.get, stream.get));
    emulated_gpu_fail("copy", 1, 0);
    std::string result;
    const char value = 1;
    const auto add = [&](cudaError_t error) { result += std::to_string(error) + " "; };
    add(cudaMemcpyAsync(device.get, &value, 1, cudaMemcpyHostToDevice, stream.get));
    add(cudaMemcpyAsync(device.get, &value, 1, cudaMemcpyHostToDevice, stream.get));
    add(cudaStreamSynchronize(stream.get));
    add(cudaEventSynchronize(event.get));
    add(cudaEventQuery(event.get));
    add(cudaEventRecord(event.get, stream.get));
    void* memory = nullptr;
    add(cudaMalloc(&memory, 8));
    add(cudaMemsetAsync(elsewhere.get, 0, 1, other.get));  // another device's context lives on
    add(cudaStreamSynchronize(other.get));
    emulated_gpu_reset();
    add(cudaStreamSynchronize(stream.get));
    return result;
  });
  EXPECT_EQ(ended.text, "0 0 700 700 700 700 700 0 0 0 ");
  EXPECT_EQ(ended.errors, "");
}

TEST(EmulatedFailures, ACopyThatFailsAtOnceIsForgotten) {
  const Ended ended = in_child({}, [] {
    const DeviceOwner<char> device(8);
    const StreamOwner stream;
    emulated_gpu_fail("copy", 0, cudaErrorMemoryAllocation);
    const char value = 1;
    std::string result;
    for (int turn = 0; turn < 2; ++turn) {
      result += std::to_string(cudaMemcpyAsync(device.get, &value, 1, cudaMemcpyHostToDevice, stream.get));
    }
    check(cudaStreamSynchronize(stream.get));
    return result;
  });
  EXPECT_EQ(ended.text, "20");
}

}  // namespace
}  // namespace onesum::testing
