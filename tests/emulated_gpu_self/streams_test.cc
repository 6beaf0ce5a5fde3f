// Streams, events and host functions.
#include <atomic>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "emulated_gpu_self/child.h"

namespace onesum::testing {
namespace {

using ::testing::HasSubstr;

void append(void* text) { *static_cast<std::string*>(text) += "x"; }

TEST(EmulatedStreams, QueriesTellWhatIsDone) {
  const Ended ended = in_child({}, [] {
    struct Gate {
      std::atomic<bool> is_open = false;
    } gate;
    const StreamOwner stream;
    const EventOwner event;
    check(cudaEventQuery(event.get));  // never recorded
    check(cudaLaunchHostFunc(
        stream.get,
        [](void* data) {
          while (!static_cast<Gate*>(data)->is_open) ::usleep(100);
        },
        &gate));
    check(cudaEventRecord(event.get, stream.get));
    std::string result = cudaGetErrorName(cudaEventQuery(event.get));
    result += std::string(" ") + cudaGetErrorName(cudaStreamQuery(stream.get));
    gate.is_open = true;
    check(cudaEventSynchronize(event.get));
    check(cudaEventQuery(event.get));
    check(cudaStreamSynchronize(stream.get));
    check(cudaStreamQuery(stream.get));
    int device = -1;
    check(cudaStreamGetDevice(stream.get, &device));
    return result + " " + std::to_string(device);
  });
  EXPECT_EQ(ended.text, "cudaErrorNotReady cudaErrorNotReady 0");
}

TEST(EmulatedStreams, AStreamWaitsForTheEventAsItWasRecordedThen) {
  const Ended ended = in_child({{"EMULATED_GPU_DELAY_US", "2000"}}, [] {
    const DeviceOwner<char> device(1);
    const StreamOwner first(0);
    const StreamOwner second(1);
    const EventOwner event;
    std::string text;
    for (int turn = 0; turn < 10; ++turn) {
      check(cudaLaunchHostFunc(first.get, append, &text));
      check(cudaEventRecord(event.get, first.get));
      check(cudaStreamWaitEvent(second.get, event.get, 0));
      check(
          cudaLaunchHostFunc(second.get, [](void* data) { *static_cast<std::string*>(data) += "y"; }, &text));
      const EventOwner back(1);
      check(cudaEventRecord(back.get, second.get));
      check(cudaStreamWaitEvent(first.get, back.get, 0));
    }
    check(cudaStreamSynchronize(first.get));
    return text;
  });
  EXPECT_EQ(ended.text, "xyxyxyxyxyxyxyxyxyxy");
  EXPECT_EQ(ended.errors, "");
}

TEST(EmulatedStreams, TheDefaultStreamIsRefused) {
  const Ended ended = in_child(counting(), [] {
    const DeviceOwner<char> device(1);
    const cudaError_t error = cudaMemsetAsync(device.get, 0, 1, nullptr);
    return std::string(cudaGetErrorName(error)) + " " + std::to_string(emulated_gpu_violations()) + " " +
           emulated_gpu_last_violation();
  });
  EXPECT_THAT(ended.text,
              HasSubstr("cudaErrorInvalidResourceHandle 1 cudaMemsetAsync on the default stream"));
}

TEST(EmulatedStreams, TheDefaultStreamOrdersBlockingStreamsWhereItIsAllowed) {
  const Ended ended = in_child(counting({{"EMULATED_GPU_ALLOW_DEFAULT_STREAM", "1"}}), [] {
    const DeviceOwner<char> device(1);
    cudaStream_t blocking;
    check(cudaStreamCreateWithFlags(&blocking, cudaStreamDefault));
    const StreamOwner other;
    check(cudaMemsetAsync(device.get, 0, 1, blocking));
    check(cudaMemsetAsync(device.get, 0, 1, nullptr));
    check(cudaMemsetAsync(device.get, 0, 1, blocking));
    const std::size_t none = emulated_gpu_violations();
    check(cudaMemsetAsync(device.get, 0, 1, other.get));
    const std::size_t one = emulated_gpu_violations();
    check(cudaDeviceSynchronize());
    check(cudaStreamDestroy(blocking));
    return std::to_string(none) + " " + std::to_string(one);
  });
  EXPECT_EQ(ended.text, "0 1");
}

TEST(EmulatedStreams, WhatIsDestroyedIsNotUsed) {
  const Ended ended = in_child(counting(), [] {
    const DeviceOwner<char> device(1);
    const StreamOwner good;
    cudaStream_t stream;
    check(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, -1));
    cudaEvent_t event;
    check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    check(cudaMemsetAsync(device.get, 0, 1, stream));
    check(cudaStreamDestroy(stream));
    check(cudaEventDestroy(event));
    std::string result;
    for (const cudaError_t error :
         {cudaMemsetAsync(device.get, 0, 1, stream), cudaStreamSynchronize(stream), cudaStreamDestroy(stream),
          cudaEventQuery(event), cudaEventDestroy(event), cudaEventRecord(event, good.get),
          cudaStreamWaitEvent(good.get, event, 0)}) {
      result += std::to_string(error) + " ";
    }
    check(cudaDeviceSynchronize());  // which waits for destroyed streams, too
    return result + std::to_string(emulated_gpu_violations());
  });
  EXPECT_EQ(ended.text, "400 400 400 400 400 400 400 7");
}

TEST(EmulatedStreams, AnEventBelongsToTheDeviceOfItsStream) {
  const Ended ended = in_child(counting(), [] {
    const StreamOwner stream(0);
    const EventOwner event(1);
    const cudaError_t error = cudaEventRecord(event.get, stream.get);
    return std::to_string(error) + " " + std::to_string(emulated_gpu_violations());
  });
  EXPECT_EQ(ended.text, "400 1");
}

TEST(EmulatedStreams, AHostFunctionMustNotCallCuda) {
  const Ended ended = in_child(counting(), [] {
    const StreamOwner stream;
    check(cudaLaunchHostFunc(stream.get, [](void* /*data*/) { cudaDeviceSynchronize(); }, nullptr));
    check(cudaStreamSynchronize(stream.get));
    return std::string(emulated_gpu_last_violation());
  });
  EXPECT_THAT(ended.text, HasSubstr("a host function of a stream calls CUDA"));
}

TEST(EmulatedStreams, TimeBetweenEvents) {
  const Ended ended = in_child({}, [] {
    const StreamOwner stream;
    const EventOwner from(0, cudaEventDefault);
    const EventOwner to(0, cudaEventDefault);
    const EventOwner without_time;
    check(cudaEventRecord(from.get, stream.get));
    check(cudaLaunchHostFunc(stream.get, [](void* /*data*/) { ::usleep(20000); }, nullptr));
    check(cudaEventRecord(to.get, stream.get));
    check(cudaEventRecord(without_time.get, stream.get));
    check(cudaStreamSynchronize(stream.get));
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, from.get, to.get));
    const cudaError_t refused = cudaEventElapsedTime(&milliseconds, from.get, without_time.get);
    return std::string(milliseconds >= 20 ? "long enough " : "too short ") + cudaGetErrorName(refused);
  });
  EXPECT_EQ(ended.text, "long enough cudaErrorInvalidResourceHandle");
}

TEST(EmulatedStreams, OperationsAreCounted) {
  const Ended ended = in_child({}, [] {
    const DeviceOwner<char> device(2);
    const StreamOwner stream;
    const EventOwner event;
    check(cudaMemsetAsync(device.get, 0, 1, stream.get));
    check(cudaMemcpyAsync(device.get, device.get + 1, 1, cudaMemcpyDeviceToDevice, stream.get));
    check(cudaEventRecord(event.get, stream.get));
    check(cudaStreamWaitEvent(stream.get, event.get, 0));
    check(cudaStreamSynchronize(stream.get));
    std::string result;
    const auto add = [&](std::initializer_list<const char*> kinds) {
      for (const char* kind : kinds) result += std::to_string(emulated_gpu_operations(kind));
    };
    add({"malloc", "fill", "copy", "event_record", "event_wait", "launch", "no such kind"});
    emulated_gpu_reset();
    add({"copy"});
    return result;
  });
  EXPECT_EQ(ended.text, "11111000");
}

}  // namespace
}  // namespace onesum::testing
