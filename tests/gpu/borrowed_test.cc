// Memory on GPUs that is not the library's: borrowed at any address, and passed through DLPack.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <dlpack/dlpack.h>
#include <gtest/gtest.h>

#include <onesum/onesum.h>

#include "gpu/cuda_calls.h"
#include "gpu/gpus.h"
#include "support/bits.h"
#include "support/expect_error.h"
#include "support/tensors.h"

namespace onesum::testing {
namespace {

// Memory on a GPU with any offset from alignment, between bytes that must not be written.
class Guarded {
 public:
  Guarded(const Tensor& contents, int gpu, std::size_t offset)
      : begin_(kGuard + offset), bytes_(contents.bytes()) {
    std::vector<std::byte> all(bytes_ + 2 * kGuard + offset, kMark);
    const std::vector<std::byte> own = bytes_of(contents);
    std::ranges::copy(own, all.begin() + static_cast<std::ptrdiff_t>(begin_));
    memory_ = Tensor::borrow(all.data(), DType::kUInt8, {static_cast<std::int64_t>(all.size())}, "CPU:0")
                  .copied_to("GPU:" + std::to_string(gpu));
    borrowed_ = Tensor::borrow(static_cast<std::byte*>(memory_.memory()) + begin_, contents.dtype(),
                               contents.shape(), memory_.device());
  }

  const Tensor& tensor() const { return borrowed_; }
  bool is_intact() const {
    const std::vector<std::byte> all = bytes_of(memory_);
    const auto is_mark = [](std::byte byte) { return byte == kMark; };
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(begin_);
    return std::all_of(all.begin(), begin, is_mark) &&
           std::all_of(begin + static_cast<std::ptrdiff_t>(bytes_), all.end(), is_mark);
  }

 private:
  static constexpr std::size_t kGuard = 64;
  static constexpr std::byte kMark{0xc3};
  std::size_t begin_;
  std::size_t bytes_;
  Tensor memory_;
  Tensor borrowed_;
};

PerReplica value_of(const std::vector<Guarded>& memory) {
  std::vector<Tensor> tensors;
  for (const Guarded& one : memory) tensors.push_back(one.tensor());
  return PerReplica(std::move(tensors));
}

std::vector<Guarded> guarded(const PerReplica& value, std::size_t first_offset, std::size_t step) {
  std::vector<Guarded> memory;
  for (std::size_t r = 0; r < value.size(); ++r)
    memory.emplace_back(value.tensor(r), static_cast<int>(r), first_offset + r * step);
  return memory;
}

std::unique_ptr<CrossDeviceOps> ops_of(const std::string& algorithm) {
  if (algorithm == "one_device") return std::make_unique<ReductionToOneDevice>();
  return std::make_unique<AllReduceCrossDeviceOps>(algorithm, 1);
}

class AnyAddress : public GpuTest, public ::testing::WithParamInterface<const char*> {};

TEST_P(AnyAddress, HasTheBitsOfTheHost) {
  ONESUM_NEEDS_GPUS(3);
  const std::unique_ptr<CrossDeviceOps> ops = ops_of(GetParam());
  for (const DType dtype : {DType::kFloat16, DType::kFloat64, DType::kComplex64}) {
    for (const std::size_t step : {std::size_t{0}, std::size_t{1}, size_of(dtype)}) {
      for (const std::size_t offset : {1U, 8U}) {
        const PerReplica here = random_value(dtype, {1009}, cpus(3), offset, Fill::kWild);
        const std::vector<Guarded> inputs = guarded(here, offset, step);
        const std::vector<Guarded> memory = guarded(here, offset + 5, step);
        const std::vector<PerReplica> values{value_of(inputs)};
        std::vector<PerReplica> results{value_of(memory)};
        ops->batch_reduce_into(ReduceOp::kSum, values, results);
        const Mirrored expected = ops->reduce(ReduceOp::kSum, here, here);
        ASSERT_TRUE(same_on(results[0], expected)) << to_string(dtype) << " at " << offset << " and " << step;
        results[0] = values[0];
        ops->batch_reduce_into(ReduceOp::kSum, values, results);
        ASSERT_TRUE(same_on(results[0], expected)) << "in place";
        for (std::size_t r = 0; r < 3; ++r) EXPECT_TRUE(inputs[r].is_intact() && memory[r].is_intact());
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, AnyAddress,
                         ::testing::Values("one_device", "hierarchical_copy", "direct", "pscpu"),
                         [](const auto& its) { return std::string(its.param); });

class NcclAddress : public GpuTest {};

// Elements need not lie where wide loads could read them, but must not be split.
TEST_F(NcclAddress, IsAlignedToItsElements) {
  ONESUM_NEEDS_GPUS(2);
  NcclAllReduce ops;
  const PerReplica here = vectors<float>({std::vector<float>(1009, 1), std::vector<float>(1009, 2)});
  const std::vector<Guarded> even = guarded(here, 4, 8);
  std::vector<PerReplica> values{value_of(even)};
  ops.batch_reduce_into(ReduceOp::kSum, values, values);
  for (std::size_t r = 0; r < 2; ++r) {
    EXPECT_EQ(contents<float>(even[r].tensor().copied_to("CPU:0")), std::vector<float>(1009, 3));
    EXPECT_TRUE(even[r].is_intact());
  }
  if (is_emulated()) {
    EXPECT_GT(count_all_reduces(), 0U);
  }
  const std::vector<Guarded> odd = guarded(here, 2, 0);
  values = {value_of(odd)};
  expect_invalid([&] { ops.batch_reduce_into(ReduceOp::kSum, values, values); },
                 {"pair 0: replica on", "GPU:0", "float32", "not aligned to 4 bytes", "NCCL"});
  const PerReplica good = moved(here, gpus(2));
  EXPECT_EQ(contents<float>(ops.reduce(ReduceOp::kSum, good, good).tensor(1)), std::vector<float>(1009, 3));
}

class DlPack : public GpuTest {};

// Another library's tensor in GPU memory, which says when it is let go.
struct Foreign {
  Foreign(int gpu, std::span<const float> contents) : memory(gpu, contents), stream(gpu) {
    memory.fill(stream);
    DLTensor& tensor = managed.dl_tensor;
    tensor.data = memory.device_memory();
    tensor.byte_offset = sizeof(float);  // the first is skipped
    extents = {static_cast<std::int64_t>(contents.size()) - 1};
    tensor.device = {kDLCUDA, gpu};
    tensor.dtype = {kDLFloat, 32, 1};
    tensor.ndim = 1;
    tensor.shape = extents.data();
    managed.manager_ctx = this;
    managed.deleter = [](DLManagedTensor* self) { ++static_cast<Foreign*>(self->manager_ctx)->deleted; };
  }

  CallerMemory memory;
  CallerStream stream;
  DLManagedTensor managed{};
  std::vector<std::int64_t> extents;
  int deleted = 0;
};

TEST_F(DlPack, ComesInOnTheCallersStream) {
  ONESUM_NEEDS_GPUS(2);
  for (const char* algorithm : {"one_device", "nccl"}) {
    Foreign first(0, std::vector<float>{9, 1, 2}), second(1, std::vector<float>{9, 3, 4});
    {
      const PerReplica value(std::vector<Tensor>{Tensor::from_dlpack(&first.managed, first.stream.get()),
                                                 Tensor::from_dlpack(&second.managed, second.stream.get())});
      EXPECT_EQ(devices_of(value)[1], Device("GPU:1").canonical());
      std::vector<PerReplica> values{value};
      ops_of(algorithm)->batch_reduce_into(ReduceOp::kMean, values, values);
      EXPECT_EQ(first.deleted + second.deleted, 0);
    }
    EXPECT_EQ(first.deleted + second.deleted, 2);
    for (Foreign* const foreign : {&first, &second}) {
      foreign->memory.read(foreign->stream);
      foreign->stream.synchronize();
      EXPECT_EQ(foreign->memory.contents(), (std::vector<float>{9, 2, 3})) << algorithm;
    }
  }
}

TEST_F(DlPack, GoesOutAndKeepsTheMemory) {
  ONESUM_NEEDS_GPUS(2);
  DLManagedTensor* managed = nullptr;
  {
    const PerReplica value = moved(vectors<float>({{1, 2, 3}, {4, 5, 6}}), gpus(2));
    managed = NcclAllReduce().reduce(ReduceOp::kSum, value, value).tensor(1).to_dlpack();
  }
  EXPECT_EQ(managed->dl_tensor.device.device_type, kDLCUDA);
  EXPECT_EQ(managed->dl_tensor.device.device_id, 1);
  const Tensor back = Tensor::from_dlpack(managed);
  EXPECT_EQ(back.memory(), managed->dl_tensor.data);
  EXPECT_EQ(contents<float>(back), (std::vector<float>{5, 7, 9}));
}

}  // namespace
}  // namespace onesum::testing
