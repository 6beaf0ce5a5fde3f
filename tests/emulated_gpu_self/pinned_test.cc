// Pinned memory is closed to the host while operations use it that the host does not know to be complete.
#include <csignal>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "emulated_gpu_self/child.h"

namespace onesum::testing {
namespace {

using ::testing::HasSubstr;

constexpr std::size_t kBytes = 3 * 4096;

// One copy between device and pinned memory; then what the host does with the memory.
template <class Touch>
Ended after_copy(cudaMemcpyKind kind, const Touch& touch) {
  return in_child({}, [&] {
    const DeviceOwner<char> device(kBytes);
    const PinnedOwner<char> pinned(kBytes);
    const StreamOwner stream;
    const bool to_host = kind == cudaMemcpyDeviceToHost;
    // Of the second page, the first half.
    char* const middle = pinned.get + 4096;
    check(cudaMemcpyAsync(to_host ? middle : device.get, to_host ? device.get : middle, 2048, kind,
                          stream.get));
    touch(static_cast<volatile char*>(pinned.get), stream.get);
    check(cudaStreamSynchronize(stream.get));
    return std::string("survived");
  });
}

TEST(EmulatedPinned, ReadingWhatACopyWritesIsFatal) {
  const Ended ended = after_copy(cudaMemcpyDeviceToHost, [](volatile char* pinned, cudaStream_t /*stream*/) {
    // Certainly complete, but nobody has asked.
    ::usleep(100000);
    [[maybe_unused]] const char read = pinned[4096 + 100];
  });
  EXPECT_EQ(ended.signal, SIGABRT);
  EXPECT_THAT(ended.errors, HasSubstr("the host reads 0x"));
  EXPECT_THAT(ended.errors,
              HasSubstr("of pinned memory while, as far as it knows, cudaMemcpyAsync (operation 1 of "
                        "stream 1, device 0"));
}

TEST(EmulatedPinned, WritingWhatACopyReadsIsFatal) {
  const Ended ended = after_copy(cudaMemcpyHostToDevice,
                                 [](volatile char* pinned, cudaStream_t /*stream*/) { pinned[4096] = 1; });
  EXPECT_EQ(ended.signal, SIGABRT);
  EXPECT_THAT(ended.errors, HasSubstr("the host writes 0x"));
}

TEST(EmulatedPinned, ReadingWhatACopyReadsIsFine) {
  const Ended ended = after_copy(cudaMemcpyHostToDevice, [](volatile char* pinned, cudaStream_t /*stream*/) {
    [[maybe_unused]] const char read = pinned[4096];
  });
  EXPECT_EQ(ended.text, "survived");
  EXPECT_EQ(ended.errors, "");
}

TEST(EmulatedPinned, AfterSynchronisationEverythingIsFine) {
  const Ended ended = after_copy(cudaMemcpyDeviceToHost, [](volatile char* pinned, cudaStream_t stream) {
    const EventOwner event;
    check(cudaEventRecord(event.get, stream));
    while (cudaEventQuery(event.get) == cudaErrorNotReady) {
    }
    pinned[4096] = static_cast<char>(pinned[4097] + 1);
  });
  EXPECT_EQ(ended.text, "survived");
  EXPECT_EQ(ended.errors, "");
}

TEST(EmulatedPinned, OtherPagesAndOtherBytesOfThePageAreFine) {
  const Ended ended = after_copy(cudaMemcpyDeviceToHost, [](volatile char* pinned, cudaStream_t /*stream*/) {
    pinned[0] = 1;
    pinned[2 * 4096] = 1;
    pinned[4096 + 2048] = 1;  // behind what is copied, on the same page
  });
  EXPECT_EQ(ended.text, "survived");
  EXPECT_EQ(ended.errors, "");
}

}  // namespace
}  // namespace onesum::testing
