#include "sparse_calls.h"

#include <cstring>
#include <random>

namespace onesum::testing {
namespace {

constexpr std::int64_t kDenseRows = 40;
constexpr std::int64_t kColumns = 5;

CommunicationOptions merging() {
  CommunicationOptions options;
  options.sparse_rows = SparseRows::kMergeDuplicates;
  return options;
}

// Numbers that use all bits of their type, so that almost every addition rounds.
void fill(Tensor tensor, std::mt19937_64& random) {
  for (std::size_t i = 0; i < tensor.shape().elements(); ++i) {
    const auto number = static_cast<std::int64_t>(random());
    switch (tensor.dtype()) {
      case DType::kFloat32:
        tensor.data<float>()[i] = static_cast<float>(number);
        break;
      case DType::kFloat64:
        tensor.data<double>()[i] = static_cast<double>(number);
        break;
      case DType::kFloat16: {
        const auto half = static_cast<std::uint16_t>((random() % 20 + 6) << 10 | random() % 1024);
        std::memcpy(static_cast<std::byte*>(tensor.memory()) + 2 * i, &half, sizeof half);
        break;
      }
      default:
        tensor.data<std::int32_t>()[i] = static_cast<std::int32_t>(number % 1000);
    }
  }
}

std::mt19937_64 random_of(int replica, std::uint64_t seed) {
  return std::mt19937_64(seed * 1000 + static_cast<std::uint64_t>(replica));
}

PerReplica slices(const Side& side, DType dtype, std::uint64_t seed) {
  return side.uneven(
      [&](int replica, const Device& device) { return random_slices(replica, device, dtype, seed); });
}

Tensor dense(int replica, const Device& device, DType dtype, std::uint64_t seed) {
  Tensor tensor = Tensor::empty(dtype, {kDenseRows, kColumns}, device);
  std::mt19937_64 random = random_of(replica, seed);
  fill(tensor, random);
  return tensor;
}

// Dense and sparse components by replica: `dense_ones` is a bit for each.
PerReplica mixed(const Side& side, DType dtype, std::uint64_t seed, unsigned dense_ones) {
  return side.uneven([&](int replica, const Device& device) -> Value {
    if ((dense_ones >> replica & 1U) != 0) return dense(replica, device, dtype, seed);
    return random_slices(replica, device, dtype, seed);
  });
}

std::vector<std::vector<Value>> components(const std::vector<PerReplica>& values) {
  std::vector<std::vector<Value>> all;
  for (const PerReplica& value : values) all.emplace_back(value.values().begin(), value.values().end());
  return all;
}

void append(std::vector<Mirrored>& all, std::vector<Mirrored> more) {
  for (Mirrored& result : more) all.push_back(std::move(result));
}

void append_values(std::vector<Mirrored>& all, const std::vector<PerReplica>& values) {
  for (std::vector<Value>& value : components(values)) all.emplace_back(std::move(value));
}

// Memory that is just what `sums` are, on the devices of this side's replicas.
std::vector<PerReplica> memory_like(const Side& side, const std::vector<Mirrored>& sums) {
  std::vector<PerReplica> memory;
  for (const Mirrored& sum : sums) {
    memory.push_back(side.uneven([&](int, const Device& device) -> Value {
      if (const auto* tensor = std::get_if<Tensor>(&sum.value(0)))
        return Tensor::empty(tensor->dtype(), tensor->shape(), device);
      const IndexedSlices& one = sum.slices();
      return IndexedSlices{Tensor::empty(one.values.dtype(), one.values.shape(), device),
                           Tensor::empty(one.indices.dtype(), one.indices.shape(), device), one.dense_shape};
    }));
  }
  return memory;
}

}  // namespace

IndexedSlices random_slices(int replica, const Device& device, DType dtype, std::uint64_t seed) {
  std::mt19937_64 random = random_of(replica, seed);
  const auto rows = replica % 4 == 3 ? 0 : static_cast<std::int64_t>(random() % 40);
  IndexedSlices slices;
  slices.values = Tensor::empty(dtype, {rows, kColumns}, device);
  fill(slices.values, random);
  // One replica with wide indices makes all wide; only the second names a dense shape.
  slices.indices = Tensor::empty(replica == 2 ? DType::kInt64 : DType::kInt32, {rows}, device);
  for (std::size_t i = 0; i < static_cast<std::size_t>(rows); ++i) {
    const auto index = static_cast<std::int32_t>(random() % 10 * 3);
    if (replica == 2) {
      slices.indices.data<std::int64_t>()[i] = index;
    } else {
      slices.indices.data<std::int32_t>()[i] = index;
    }
  }
  if (replica == 1) slices.dense_shape = Shape{kDenseRows, kColumns};
  return slices;
}

std::vector<Mirrored> merged_sums(const Side& side) {
  std::vector<Mirrored> all;
  std::uint64_t seed = 1;
  ReductionToOneDevice to_one({}, {}, side.cluster);
  MultiWorkerAllReduce all_reduce = side.ops("auto");
  for (const DType dtype : {DType::kFloat32, DType::kFloat16, DType::kInt32, DType::kFloat64}) {
    for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kMean}) {
      const PerReplica value = slices(side, dtype, ++seed);
      all.push_back(to_one.reduce(op, value, Destination(value), merging()));
      all.push_back(all_reduce.reduce(op, value, "CPU:1", merging()));
      all.push_back(to_one.reduce(op, value, own_device(side.workers - 1, 0), merging()));
      all.push_back(all_reduce.reduce(op, value, Destination(value), merging()));  // again: bound before
    }
  }
  // Together with dense values, into memory of the caller's, prepared, and without waiting.
  std::vector<PerReplica> values{slices(side, DType::kFloat32, 90), slices(side, DType::kFloat32, 91)};
  values.push_back(side.uneven(
      [](int replica, const Device& device) { return dense(replica, device, DType::kFloat32, 92); }));
  std::vector<ValueDestination> pairs;
  for (const PerReplica& value : values) pairs.push_back({value, value});
  const std::vector<Mirrored> sums = all_reduce.batch_reduce(ReduceOp::kMean, pairs, merging());
  append(all, sums);
  std::vector<PerReplica> results = memory_like(side, sums);
  all_reduce.batch_reduce_into(ReduceOp::kMean, values, results, merging());
  append_values(all, results);
  results = memory_like(side, sums);
  PreparedReduce prepared = all_reduce.prepare(ReduceOp::kMean, values, results, merging());
  prepared.run();
  prepared.start().wait();
  append_values(all, results);
  append(all, to_one.batch_reduce_async(ReduceOp::kSum, pairs, merging()).results());
  return all;
}

std::vector<Mirrored> mixed_sums(const Side& side) {
  std::vector<Mirrored> all;
  std::uint64_t seed = 1;
  // Dense on the first worker alone, on the second alone, on both, and inside each. The calls of an object
  // are not asked about again if all replicas were dense.
  for (const unsigned dense_ones : {0x3U, 0x4U, 0x7U, 0x1U, 0xFFFFFFFEU, 0xAAAAAAAAU}) {
    ReductionToOneDevice to_one({}, {}, side.cluster);
    MultiWorkerAllReduce all_reduce = side.ops("auto");
    for (const DType dtype : {DType::kFloat32, DType::kFloat16, DType::kInt32}) {
      const PerReplica value = mixed(side, dtype, ++seed, dense_ones);
      const ReduceOp op = seed % 2 == 0 ? ReduceOp::kSum : ReduceOp::kMean;
      all.push_back(to_one.reduce(op, value, Destination(value)));
      all.push_back(all_reduce.reduce(op, value, Destination(value), merging()));
      all.push_back(all_reduce.reduce(op, value, "CPU:0"));
    }
  }
  MultiWorkerAllReduce all_reduce = side.ops("auto");
  // Each kind in one batch, which merges rows besides; into memory of the caller's, in place where that is
  // possible, and prepared.
  const PerReplica dense_in_place = side.uneven(
      [](int replica, const Device& device) { return dense(replica, device, DType::kFloat64, 70); });
  const std::vector<PerReplica> values{mixed(side, DType::kFloat32, 71, 0x4U),
                                       slices(side, DType::kFloat32, 72), dense_in_place};
  std::vector<ValueDestination> pairs;
  for (const PerReplica& value : values) pairs.push_back({value, value});
  const std::vector<Mirrored> sums = all_reduce.batch_reduce(ReduceOp::kSum, pairs, merging());
  append(all, sums);
  std::vector<PerReplica> results = memory_like(side, sums);
  results.back() = dense_in_place;
  // Where the replica is dense, its result may replace it.
  const std::vector<Value> mixed_components(values.front().values().begin(), values.front().values().end());
  std::vector<Value> targets(results.front().values().begin(), results.front().values().end());
  for (std::size_t r = 0; r < targets.size(); ++r) {
    if (std::holds_alternative<Tensor>(mixed_components[r])) targets[r] = mixed_components[r];
  }
  results.front() = PerReplica(targets);
  PreparedReduce prepared = all_reduce.prepare(ReduceOp::kSum, values, results, merging());
  prepared.run();
  prepared.run();
  append_values(all, results);
  return all;
}

}  // namespace onesum::testing
