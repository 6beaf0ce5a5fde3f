// How many devices there are, and who can access whom.
#include <csignal>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "emulated_gpu_self/child.h"

namespace onesum::testing {
namespace {

TEST(EmulatedDevices, ThereAreNoneUnlessAskedFor) {
  const Ended ended = in_child({{"EMULATED_GPU_DEVICES", "0"}}, [] {
    int count = 7;
    const cudaError_t error = cudaGetDeviceCount(&count);
    std::string result = std::string(cudaGetErrorName(error)) + " " + std::to_string(count);
    void* memory = nullptr;
    for (const cudaError_t next :
         {cudaMalloc(&memory, 8), cudaPeekAtLastError(), cudaGetLastError(), cudaGetLastError()}) {
      result += std::string(" ") + cudaGetErrorName(next);
    }
    return result;
  });
  EXPECT_EQ(ended.text,
            "cudaErrorNoDevice 0 cudaErrorNoDevice cudaErrorNoDevice cudaErrorNoDevice cudaSuccess");
  EXPECT_EQ(ended.errors, "");
}

TEST(EmulatedDevices, WithoutDriverTheCountIsUntouched) {
  const Ended ended = in_child({{"EMULATED_GPU_DRIVER", "none"}}, [] {
    int count = 7;
    int version = 7;
    const cudaError_t error = cudaGetDeviceCount(&count);
    cudaDriverGetVersion(&version);
    return std::to_string(error) + " " + std::to_string(count) + " " + std::to_string(version);
  });
  EXPECT_EQ(ended.text, "35 7 0");
}

TEST(EmulatedDevices, AsManyAsAskedFor) {
  const Ended ended = in_child({{"EMULATED_GPU_DEVICES", "3"}}, [] {
    int count = 0;
    check(cudaGetDeviceCount(&count));
    check(cudaSetDevice(2));
    int device = 0;
    check(cudaGetDevice(&device));
    char bus[32];
    check(cudaDeviceGetPCIBusId(bus, sizeof(bus), 2));
    cudaDeviceProp properties;
    check(cudaGetDeviceProperties(&properties, 2));
    int version = 0;
    check(cudaRuntimeGetVersion(&version));
    int processors = 0;
    check(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, 2));
    return std::to_string(count) + " " + std::to_string(device) + " " + bus + " " + properties.name + " " +
           std::to_string(version / 1000) + " " +
           (processors == properties.multiProcessorCount ? "same" : "different") + " " +
           cudaGetErrorName(cudaSetDevice(3)) + " " + cudaGetErrorName(cudaSetDevice(-1));
  });
  EXPECT_EQ(ended.text,
            "3 2 0000:12:00.0 Emulated GPU 2 13 same cudaErrorInvalidDevice cudaErrorInvalidDevice");
}

TEST(EmulatedDevices, ThoseThatMayBeSeen) {
  const auto names = [](const char* visible) {
    return in_child({{"EMULATED_GPU_DEVICES", "4"}, {"CUDA_VISIBLE_DEVICES", visible}},
                    [] {
                      int count = 0;
                      std::string result = cudaGetErrorName(cudaGetDeviceCount(&count));
                      for (int device = 0; device < count; ++device) {
                        cudaDeviceProp properties;
                        check(cudaGetDeviceProperties(&properties, device));
                        result += std::string(", ") + properties.name;
                      }
                      return result;
                    })
        .text;
  };
  EXPECT_EQ(names("2"), "cudaSuccess, Emulated GPU 2");
  EXPECT_EQ(names("3,0"), "cudaSuccess, Emulated GPU 3, Emulated GPU 0");
  EXPECT_EQ(names("1,4,0"), "cudaSuccess, Emulated GPU 1");
  EXPECT_EQ(names(""), "cudaErrorNoDevice");
}

std::string peers_of(const char* setting) {
  return in_child({{"EMULATED_GPU_DEVICES", "4"}, {"EMULATED_GPU_PEERS", setting}},
                  [] {
                    std::string result;
                    for (int device = 0; device < 4; ++device) {
                      for (int peer = 0; peer < 4; ++peer) {
                        int can = 0;
                        check(cudaDeviceCanAccessPeer(&can, device, peer));
                        result += std::to_string(can);
                      }
                    }
                    return result;
                  })
      .text;
}

TEST(EmulatedDevices, PeersAsSet) {
  EXPECT_EQ(peers_of("all"), "0111101111011110");
  EXPECT_EQ(peers_of("none"), "0000000000000000");
  EXPECT_EQ(peers_of("0-1,2-3"), "0100100000010010");
}

TEST(EmulatedDevices, PeerAccessIsEnabledOnce) {
  const Ended ended = in_child({{"EMULATED_GPU_DEVICES", "3"}, {"EMULATED_GPU_PEERS", "0-1"}}, [] {
    std::string result;
    for (const int peer : {1, 1, 2}) {
      result += std::string(cudaGetErrorName(cudaDeviceEnablePeerAccess(peer, 0))) + " ";
    }
    return result;
  });
  EXPECT_EQ(ended.text, "cudaSuccess cudaErrorPeerAccessAlreadyEnabled cudaErrorPeerAccessUnsupported ");
}

TEST(EmulatedDevices, ASettingThatIsNotUnderstoodEndsTheProcess) {
  const Ended ended = in_child({{"EMULATED_GPU_VIOLATIONS", "never"}}, [] {
    int count = 0;
    cudaGetDeviceCount(&count);
    return std::string();
  });
  EXPECT_EQ(ended.signal, SIGABRT);
  EXPECT_THAT(ended.errors,
              ::testing::HasSubstr("EMULATED_GPU_VIOLATIONS is \"never\", expected abort or count"));
}

}  // namespace
}  // namespace onesum::testing
