// Copies and fills, and memory that they must not touch.
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "emulated_gpu_self/child.h"

namespace onesum::testing {
namespace {

using ::testing::HasSubstr;

TEST(EmulatedCopies, PageableMemoryIsReadAtTheCall) {
  const Ended ended = in_child({{"EMULATED_GPU_DELAY_US", "20000"}}, [] {
    const DeviceOwner<int> device(1);
    const StreamOwner stream;
    int value = 5;
    check(cudaMemcpyAsync(device.get, &value, 4, cudaMemcpyHostToDevice, stream.get));
    value = 6;
    int result = 0;
    check(cudaMemcpyAsync(&result, device.get, 4, cudaMemcpyDeviceToHost, stream.get));
    return std::to_string(result);  // and a copy to it returns when it is there
  });
  EXPECT_EQ(ended.text, "5");
  EXPECT_EQ(ended.errors, "");
}

TEST(EmulatedCopies, RowsAndFills) {
  const Ended ended = in_child({}, [] {
    const DeviceOwner<unsigned char> device(32);
    const StreamOwner stream;
    check(cudaMemsetAsync(device.get, 7, 32, stream.get));
    std::vector<unsigned char> values(6);
    std::iota(values.begin(), values.end(), 1);
    // Two rows of three bytes become two rows, ten bytes apart.
    check(cudaMemcpy2DAsync(device.get, 10, values.data(), 3, 3, 2, cudaMemcpyHostToDevice, stream.get));
    std::vector<unsigned char> result(14);
    check(cudaMemcpyAsync(result.data(), device.get, 14, cudaMemcpyDefault, stream.get));
    std::string text;
    for (const int value : result) text += std::to_string(value);
    return text;
  });
  EXPECT_EQ(ended.text, "12377777774567");
}

TEST(EmulatedCopies, BetweenDevices) {
  const Ended ended = in_child(counting(), [] {
    const DeviceOwner<int> first(1, 0);
    const DeviceOwner<int> second(1, 1);
    const StreamOwner stream(0);
    int value = 9;
    check(cudaMemcpy(first.get, &value, 4, cudaMemcpyHostToDevice));
    check(cudaMemcpyPeerAsync(second.get, 1, first.get, 0, 4, stream.get));
    const std::string wrong =
        cudaGetErrorName(cudaMemcpyPeerAsync(second.get, 0, first.get, 1, 4, stream.get));
    // Without peer access, a copy that does not name the devices is a mistake.
    const cudaError_t forbidden = cudaMemcpyAsync(second.get, first.get, 4, cudaMemcpyDefault, stream.get);
    const std::string text = emulated_gpu_last_violation();
    check(cudaDeviceEnablePeerAccess(1, 0));
    const cudaError_t allowed = cudaMemcpyAsync(second.get, first.get, 4, cudaMemcpyDefault, stream.get);
    check(cudaStreamSynchronize(stream.get));
    int result = 0;
    check(cudaMemcpy(&result, second.get, 4, cudaMemcpyDeviceToHost));
    return std::to_string(result) + " " + wrong + " " + cudaGetErrorName(forbidden) + " " +
           cudaGetErrorName(allowed) + " " + std::to_string(emulated_gpu_violations()) + " " + text;
  });
  EXPECT_THAT(ended.text, HasSubstr("9 cudaErrorInvalidValue cudaErrorInvalidValue cudaSuccess 2 "));
  EXPECT_THAT(ended.text, HasSubstr("which device 0 of the stream has no access to"));
}

TEST(EmulatedCopies, MemoryThatIsNotThereIsAViolation) {
  const Ended ended = in_child(counting(), [] {
    const DeviceOwner<char> device(100);
    const StreamOwner stream;
    std::vector<char> host(200);
    std::string result;
    const auto copy = [&](void* to, std::size_t bytes, cudaMemcpyKind kind) {
      result +=
          std::string(cudaGetErrorName(cudaMemcpyAsync(to, host.data(), bytes, kind, stream.get))) + " ";
    };
    copy(device.get + 50, 51, cudaMemcpyHostToDevice);    // behind its end
    copy(host.data() + 100, 10, cudaMemcpyHostToDevice);  // host memory where device memory is said to be
    copy(device.get, 10, cudaMemcpyHostToHost);           // and the other way round
    char* freed = nullptr;
    check(cudaMalloc(reinterpret_cast<void**>(&freed), 10));
    check(cudaFree(freed));
    copy(freed, 10, cudaMemcpyDefault);
    copy(host.data() + 5, 10, cudaMemcpyHostToHost);  // overlap
    return result + std::to_string(emulated_gpu_violations());
  });
  EXPECT_EQ(ended.text,
            "cudaErrorInvalidValue cudaErrorInvalidValue cudaErrorInvalidValue cudaErrorInvalidValue "
            "cudaErrorInvalidValue 5");
  EXPECT_THAT(ended.errors, HasSubstr("is not inside device memory"));
  EXPECT_THAT(ended.errors, HasSubstr("was freed: device memory"));
  EXPECT_THAT(ended.errors, HasSubstr("overlap"));
}

TEST(EmulatedCopies, ASynchronousCopyDoesNotWaitForNonBlockingStreams) {
  const Ended ended = in_child(counting(), [] {
    const DeviceOwner<char> device(100);
    const StreamOwner stream;
    check(cudaMemsetAsync(device.get, 0, 100, stream.get));
    char result = 0;
    check(cudaMemcpy(&result, device.get, 1, cudaMemcpyDeviceToHost));
    const std::size_t violations = emulated_gpu_violations();
    check(cudaStreamSynchronize(stream.get));
    check(cudaMemcpy(&result, device.get, 1, cudaMemcpyDeviceToHost));
    return std::to_string(violations) + " " + std::to_string(emulated_gpu_violations());
  });
  EXPECT_EQ(ended.text, "1 1");
}

}  // namespace
}  // namespace onesum::testing
