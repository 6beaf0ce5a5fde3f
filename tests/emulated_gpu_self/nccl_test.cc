// Collectives between the devices of one process.
#include <string>
#include <thread>
#include <vector>

#include <cuda_bf16.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "emulated_gpu_self/clique.h"

namespace onesum::testing {
namespace {

using ::testing::HasSubstr;

std::string text_of(const std::vector<float>& values) {
  std::string result;
  for (const float value : values) result += std::to_string(static_cast<int>(value)) + " ";
  return result;
}

TEST(EmulatedNccl, SumsOfAllRanks) {
  const Ended ended = in_child({{"EMULATED_GPU_DEVICES", "3"}, {"EMULATED_GPU_DELAY_US", "500"}}, [] {
    int version = 0;
    check(ncclGetVersion(&version));
    Ranks ranks = make_ranks(3, 4);
    init(ranks);
    for (int rank = 0; rank < 3; ++rank) {
      const auto value = static_cast<float>(rank + 1);
      ranks[static_cast<std::size_t>(rank)]->put({value, value * 10, value * 100, value * 1000});
    }
    for (int turn = 0; turn < 5; ++turn) check(all_reduce(ranks, 4));
    std::string result = std::to_string(version / 100) + ": ";
    for (const auto& rank : ranks) result += text_of(rank->get(4));
    int count = 0;
    int user_rank = 0;
    int device = 0;
    check(ncclCommCount(ranks[2]->communicator, &count));
    check(ncclCommUserRank(ranks[2]->communicator, &user_rank));
    check(ncclCommCuDevice(ranks[2]->communicator, &device));
    result += std::to_string(count) + std::to_string(user_rank) + std::to_string(device);
    for (const auto& rank : ranks) check(ncclCommFinalize(rank->communicator));
    destroy(ranks);
    return result;
  });
  EXPECT_EQ(ended.text, "228: 486 4860 48600 486000 486 4860 48600 486000 486 4860 48600 486000 322");
  EXPECT_EQ(ended.errors, "");
}

TEST(EmulatedNccl, ReduceAndBroadcastHaveARoot) {
  const Ended ended = in_child({}, [] {
    Ranks ranks = make_ranks(2, 2);
    init(ranks);
    ranks[0]->put({1, 2});
    ranks[1]->put({10, 20});
    check(ncclGroupStart());
    for (const auto& rank : ranks) {
      check(ncclReduce(rank->memory.get, rank->memory.get, 2, ncclFloat32, ncclSum, 1, rank->communicator,
                       rank->stream.get));
    }
    check(ncclGroupEnd());
    std::string result = text_of(ranks[0]->get(2)) + text_of(ranks[1]->get(2));
    check(ncclGroupStart());
    for (const auto& rank : ranks) {
      check(ncclBroadcast(rank->memory.get, rank->memory.get, 2, ncclFloat32, 1, rank->communicator,
                          rank->stream.get));
    }
    check(ncclGroupEnd());
    for (const auto& rank : ranks) result += text_of(rank->get(2));
    destroy(ranks);
    return result;
  });
  EXPECT_EQ(ended.text, "1 2 11 22 11 22 11 22 ");
  EXPECT_EQ(ended.errors, "");
}

TEST(EmulatedNccl, SumsAreARings) {
  // Of 4 ranks and 4 elements, element i is added from rank i on. A balanced tree would add 2 to the large
  // number.
  const Ended ended = in_child({{"EMULATED_GPU_DEVICES", "4"}}, [] {
    Ranks ranks = make_ranks(4, 4);
    init(ranks);
    std::string result;
    const float large = 16777216;  // 2^24: adding 1 to it is lost
    for (const auto& rank : ranks) {
      const float value = rank == ranks[0] ? large : 1;
      rank->put({value, value, value, value});
    }
    check(all_reduce(ranks, 4));
    for (const auto& rank : ranks) check(cudaStreamSynchronize(rank->stream.get));
    result += text_of(ranks[3]->get(4));
    // In bfloat16, 256 + 1 is lost.
    for (const auto& rank : ranks) {
      const __nv_bfloat16 value = __float2bfloat16_rn(rank == ranks[0] ? 256 : 1);
      const std::vector<__nv_bfloat16> values(4, value);
      check(cudaMemcpy(rank->memory.get, values.data(), 8, cudaMemcpyHostToDevice));
    }
    check(ncclGroupStart());
    for (const auto& rank : ranks) {
      check(ncclAllReduce(rank->memory.get, rank->memory.get, 4, ncclBfloat16, ncclSum, rank->communicator,
                          rank->stream.get));
    }
    check(ncclGroupEnd());
    for (const auto& rank : ranks) check(cudaStreamSynchronize(rank->stream.get));
    std::vector<__nv_bfloat16> sums(4);
    check(cudaMemcpy(sums.data(), ranks[0]->memory.get, 8, cudaMemcpyDeviceToHost));
    for (const __nv_bfloat16 sum : sums)
      result += std::to_string(static_cast<int>(__bfloat162float(sum))) + " ";
    destroy(ranks);
    return result;
  });
  EXPECT_EQ(ended.text, "16777216 16777220 16777220 16777216 256 260 260 256 ");
}

TEST(EmulatedNccl, WithoutBlockingItMustBePolled) {
  const Ended ended = in_child({}, [] {
    Ranks ranks = make_ranks(2, 1);
    ncclUniqueId id;
    check(ncclGetUniqueId(&id));
    std::string result;
    const auto settle = [&] {
      for (const auto& rank : ranks) {
        ncclResult_t state = ncclInProgress;
        while (state == ncclInProgress) check(ncclCommGetAsyncError(rank->communicator, &state));
        check(state);
      }
    };
    for (const auto& rank : ranks) {  // outside a group: it does not block
      check(cudaSetDevice(rank->device));
      ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
      config.blocking = 0;
      result += std::to_string(ncclCommInitRankConfig(&rank->communicator, 2, id, rank->device, &config));
    }
    settle();
    for (const auto& rank : ranks) rank->put({3});
    result += std::to_string(all_reduce(ranks, 1));
    settle();
    result += " " + text_of(ranks[1]->get(1));
    for (const auto& rank : ranks) result += std::to_string(ncclCommFinalize(rank->communicator));
    settle();
    check(cudaStreamSynchronize(ranks[0]->stream.get));
    destroy(ranks);
    return result;
  });
  EXPECT_EQ(ended.text, "777 6 77");
  EXPECT_EQ(ended.errors, "");
}

TEST(EmulatedNccl, UsingTheStreamBeforeTheLaunchIsCompleteIsAViolation) {
  const Ended ended = in_child(counting(), [] {
    Ranks ranks = make_ranks(1, 1);
    ncclUniqueId id;
    check(ncclGetUniqueId(&id));
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    ncclComm_t& communicator = ranks[0]->communicator;
    std::string result = std::to_string(ncclCommInitRankConfig(&communicator, 1, id, 0, &config));
    ncclResult_t state = ncclInProgress;
    while (state == ncclInProgress) check(ncclCommGetAsyncError(communicator, &state));
    result += std::to_string(all_reduce(ranks, 1));
    const EventOwner event;
    // Another thread cannot count on an order.
    std::thread([&] { check(cudaEventRecord(event.get, ranks[0]->stream.get)); }).join();
    result += " " + std::to_string(emulated_gpu_violations());
    check(cudaEventRecord(event.get, ranks[0]->stream.get));
    result += " " + std::to_string(emulated_gpu_violations()) + " " + emulated_gpu_last_violation();
    check(ncclCommAbort(communicator));
    return result;
  });
  EXPECT_THAT(ended.text, HasSubstr("77 0 1 cudaEventRecord on stream 1 before ncclCommGetAsyncError"));
}

TEST(EmulatedNccl, LaunchingOnADeviceWhileAnotherThreadDoesIsAViolation) {
  const Ended ended = in_child(counting(), [] {
    const auto launch = [](const Ranks& ranks) {
      ncclUniqueId id;
      check(ncclGetUniqueId(&id));
      ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
      config.blocking = 0;
      ncclComm_t& communicator = ranks[0]->communicator;
      ncclResult_t state = ncclCommInitRankConfig(&communicator, 1, id, 0, &config);
      while (state == ncclInProgress) check(ncclCommGetAsyncError(communicator, &state));
      all_reduce(ranks, 1);
    };
    const Ranks first = make_ranks(1, 1);
    const Ranks second = make_ranks(1, 1);
    launch(first);
    std::thread([&] { launch(second); }).join();
    std::string result = std::to_string(emulated_gpu_violations()) + " " + emulated_gpu_last_violation();
    for (const Ranks* const ranks : {&first, &second}) check(ncclCommAbort((*ranks)[0]->communicator));
    return result;
  });
  EXPECT_THAT(ended.text, HasSubstr("1 ncclAllReduce while another thread's collective is being enqueued"));
}

TEST(EmulatedNccl, SplitElementsAreAViolation) {
  const Ended ended = in_child(counting(), [] {
    Ranks ranks = make_ranks(1, 2);
    init(ranks);
    std::byte* const memory = reinterpret_cast<std::byte*>(ranks[0]->memory.get) + 2;
    const ncclResult_t error =
        ncclAllReduce(memory, memory, 1, ncclFloat32, ncclSum, ranks[0]->communicator, ranks[0]->stream.get);
    const std::string result = std::to_string(error) + " " + emulated_gpu_last_violation();
    check(ncclCommAbort(ranks[0]->communicator));
    return result;
  });
  EXPECT_THAT(ended.text, HasSubstr("which is not aligned to 4 bytes"));
}

TEST(EmulatedNccl, AThreadMustNotWaitForItself) {
  const Ended init_alone = in_child(counting({{"EMULATED_GPU_INIT_SECONDS", "1"}}), [] {
    ncclUniqueId id;
    check(ncclGetUniqueId(&id));
    ncclComm_t communicator;
    const ncclResult_t error = ncclCommInitRank(&communicator, 2, id, 0);
    check(ncclCommAbort(communicator));
    return std::to_string(error) + " " + emulated_gpu_last_violation();
  });
  EXPECT_THAT(init_alone.text, HasSubstr("2 rank 0 of 2 has waited 1 s in ncclCommInitRank"));
  const Ended collective_alone = in_child(counting(), [] {
    Ranks ranks = make_ranks(2, 1);
    init(ranks);
    std::string result;
    for (const auto& rank : ranks) {
      result += std::to_string(ncclAllReduce(rank->memory.get, rank->memory.get, 1, ncclFloat32, ncclSum,
                                             rank->communicator, rank->stream.get)) +
                " ";
    }
    result += emulated_gpu_last_violation();
    for (const auto& rank : ranks) check(ncclCommAbort(rank->communicator));
    check(cudaStreamSynchronize(ranks[0]->stream.get));
    return result;
  });
  EXPECT_THAT(collective_alone.text,
              HasSubstr("0 5 ncclAllReduce of ranks 0 and 1 by one thread, outside a group"));
}

TEST(EmulatedNccl, ThreadsOfOneRankEachNeedNoGroup) {
  const Ended ended = in_child({}, [] {
    Ranks ranks = make_ranks(2, 1);
    ncclUniqueId id;
    check(ncclGetUniqueId(&id));
    std::vector<std::thread> threads;
    for (const auto& rank : ranks) {
      threads.emplace_back([&id, &rank] {
        check(cudaSetDevice(rank->device));
        check(ncclCommInitRank(&rank->communicator, 2, id, rank->device));
        rank->put({4});
        for (int turn = 0; turn < 3; ++turn) {
          check(ncclAllReduce(rank->memory.get, rank->memory.get, 1, ncclFloat32, ncclSum, rank->communicator,
                              rank->stream.get));
        }
        check(cudaStreamSynchronize(rank->stream.get));
        check(ncclCommDestroy(rank->communicator));
      });
    }
    for (std::thread& thread : threads) thread.join();
    return text_of(ranks[0]->get(1));
  });
  EXPECT_EQ(ended.text, "32 ");
  EXPECT_EQ(ended.errors, "");
}

template <class Call>
Ended with_mistake(const Call& call) {
  return in_child(counting(), [&] {
    Ranks ranks = make_ranks(2, 10);
    init(ranks);
    std::string result = call(ranks);
    result += " " + std::to_string(emulated_gpu_violations());
    for (const auto& rank : ranks) check(ncclCommAbort(rank->communicator));
    for (const auto& rank : ranks) check(cudaStreamSynchronize(rank->stream.get));
    return result;
  });
}

TEST(EmulatedNccl, WrongArgumentsAreViolations) {
  const Ended ended = with_mistake([](const Ranks& ranks) {
    const Rank& rank = *ranks[0];
    float* const memory = rank.memory.get;
    std::string result;
    const auto reduce = [&](float* from, float* to, std::size_t count, int op, int dtype,
                            cudaStream_t stream) {
      result += std::to_string(ncclAllReduce(from, to, count, static_cast<ncclDataType_t>(dtype),
                                             static_cast<ncclRedOp_t>(op), rank.communicator, stream));
    };
    reduce(memory, memory, 11, ncclSum, ncclFloat32, rank.stream.get);               // too many
    reduce(memory, memory + 1, 5, ncclSum, ncclFloat32, rank.stream.get);            // overlap
    reduce(memory, ranks[1]->memory.get, 5, ncclSum, ncclFloat32, rank.stream.get);  // another device's
    reduce(memory, memory, 5, ncclSum, ncclFloat32, ranks[1]->stream.get);           // also
    reduce(memory, memory, 5, ncclMax, ncclFloat32, rank.stream.get);                // not emulated
    reduce(memory, memory, 5, ncclSum, ncclFloat8e4m3, rank.stream.get);             // not emulated
    result += std::to_string(ncclGroupEnd());
    return result;
  });
  EXPECT_EQ(ended.text, "4544445 7");
}

TEST(EmulatedNccl, RanksThatDisagreeAreFound) {
  const Ended ended = with_mistake([](const Ranks& ranks) {
    check(ncclGroupStart());
    for (const auto& rank : ranks) {
      const std::size_t count = rank->device == 0 ? 5 : 6;
      check(ncclAllReduce(rank->memory.get, rank->memory.get, count, ncclFloat32, ncclSum, rank->communicator,
                          rank->stream.get));
    }
    check(ncclGroupEnd());
    std::string result;
    for (const auto& rank : ranks) {
      ncclResult_t state = ncclSuccess;
      while (state == ncclSuccess) check(ncclCommGetAsyncError(rank->communicator, &state));
      result += std::to_string(state);
    }
    return result;
  });
  EXPECT_EQ(ended.text, "55 2");
  EXPECT_THAT(ended.errors, HasSubstr("rank 0 all-reduces 5 elements of float32, but rank 1 all-reduces 6"));
}

TEST(EmulatedNccl, CollectivesRaceWithOtherOperations) {
  const Ended ended = with_mistake([](const Ranks& ranks) {
    const StreamOwner other;
    check(all_reduce(ranks, 10));
    check(cudaMemsetAsync(ranks[0]->memory.get, 0, 4, other.get));
    const std::string result = emulated_gpu_last_violation();
    check(cudaStreamSynchronize(other.get));
    for (const auto& rank : ranks) check(cudaStreamSynchronize(rank->stream.get));
    return result;
  });
  EXPECT_THAT(ended.text, HasSubstr("ncclAllReduce of rank 0 (operation 1 of stream 1"));
}

TEST(EmulatedNccl, AHangEndsWithAnAbortFromAnotherThread) {
  const Ended ended = in_child({{"EMULATED_GPU_FAIL", "collective_hang:1"}}, [] {
    Ranks ranks = make_ranks(2, 1);
    init(ranks);
    check(all_reduce(ranks, 1));
    std::thread aborter([&] {
      ::usleep(50000);
      for (const auto& rank : ranks) check(ncclCommAbort(rank->communicator));
    });
    const std::string result = std::to_string(cudaStreamQuery(ranks[0]->stream.get));
    for (const auto& rank : ranks) check(cudaStreamSynchronize(rank->stream.get));
    aborter.join();
    return result;
  });
  EXPECT_EQ(ended.text, std::to_string(cudaErrorNotReady));
  EXPECT_EQ(ended.errors, "");
}

TEST(EmulatedNccl, AsynchronousErrorsAndFailedMeetings) {
  const Ended collective = in_child({{"EMULATED_GPU_FAIL", "collective_async_error:0"}}, [] {
    Ranks ranks = make_ranks(2, 1);
    init(ranks);
    check(all_reduce(ranks, 1));
    ncclResult_t state = ncclSuccess;
    while (state == ncclSuccess) check(ncclCommGetAsyncError(ranks[0]->communicator, &state));
    const bool still_runs = cudaStreamQuery(ranks[0]->stream.get) == cudaErrorNotReady;
    for (const auto& rank : ranks) check(ncclCommAbort(rank->communicator));
    for (const auto& rank : ranks) check(cudaStreamSynchronize(rank->stream.get));
    return std::to_string(state) + (still_runs ? " hangs" : " ended");
  });
  EXPECT_EQ(collective.text, "6 hangs");
  EXPECT_EQ(collective.errors, "");
  const Ended meeting = in_child({{"EMULATED_GPU_FAIL", "comm_init:0"}}, [] {
    ncclUniqueId id;
    check(ncclGetUniqueId(&id));
    ncclComm_t communicator;
    const ncclResult_t error = ncclCommInitRank(&communicator, 1, id, 0);
    check(ncclCommAbort(communicator));
    return std::string(ncclGetErrorString(error));
  });
  EXPECT_EQ(meeting.text, "unhandled system error");
}

TEST(EmulatedNccl, CommunicatorsAreCountedAndGoneWhenDestroyed) {
  const Ended ended = in_child(counting(), [] {
    Ranks ranks = make_ranks(2, 1);
    init(ranks);
    EmulatedGpuLive live;
    emulated_gpu_live(&live);
    std::string result = std::to_string(live.communicators);
    destroy(ranks);
    emulated_gpu_live(&live);
    result += std::to_string(live.communicators);
    result += std::to_string(ncclCommDestroy(ranks[0]->communicator));
    return result + std::to_string(emulated_gpu_violations());
  });
  EXPECT_EQ(ended.text, "2041");
}

}  // namespace
}  // namespace onesum::testing
