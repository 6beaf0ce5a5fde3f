#include "calls.h"

#include <cmath>
#include <random>

namespace onesum::testing {
std::vector<std::string> worker_names(int size) {
  std::vector<std::string> names;
  for (int rank = 0; rank < size; ++rank) names.push_back("/job:worker/task:" + std::to_string(rank));
  return names;
}

const std::vector<std::string>& all_specs() {
  static const std::vector<std::string> specs = {"auto",         "xring",
                                                 "xring#3",      "rechd",
                                                 "direct",       "pscpu",
                                                 "psgpu",        "nccl",
                                                 "nccl/xring",   "nccl/rechd",
                                                 "nccl/pscpu#2", "pscpu/pscpu#2",
                                                 "xring/direct", "hierarchical_copy",
                                                 "exchange",     "nccl/exchange",
                                                 "doubling",     "nccl/doubling",
                                                 "pool",         "nccl/pool"};
  return specs;
}

PerReplica replicas(int first, int count, DType dtype, std::size_t elements, std::uint64_t seed) {
  std::vector<Tensor> tensors;
  for (int worker = first; worker < first + count; ++worker) {
    for (int device = 0; device < kDevices; ++device) {
      const std::string name =
          "/job:worker/replica:0/task:" + std::to_string(worker) + "/device:CPU:" + std::to_string(device);
      Tensor tensor = Tensor::empty(dtype, {static_cast<std::int64_t>(elements)}, Device(name));
      std::mt19937_64 random(seed * 1000 + static_cast<std::uint64_t>(worker * kDevices + device));
      for (std::size_t i = 0; i < elements; ++i) {
        if (dtype == DType::kFloat32) {
          const int exponent = static_cast<int>(random() % 40) - 20;
          tensor.data<float>()[i] = std::ldexp(static_cast<float>(random() % 65536) - 32768.0F, exponent);
        } else if (dtype == DType::kFloat64) {
          tensor.data<double>()[i] = static_cast<double>(random()) - 9e18;
        } else {
          tensor.data<std::int32_t>()[i] = static_cast<std::int32_t>(random());
        }
      }
      tensors.push_back(tensor);
    }
  }
  return PerReplica(std::move(tensors));
}

std::string digest(const DistributedValues& value) {
  std::uint64_t hash = 1469598103934665603U;
  const auto add = [&](const Tensor& tensor) {
    const auto* bytes = static_cast<const unsigned char*>(tensor.memory());
    for (std::size_t i = 0; i < tensor.bytes(); ++i) hash = (hash ^ bytes[i]) * 1099511628211U;
  };
  for (const Value& component : value.values()) {
    if (const auto* tensor = std::get_if<Tensor>(&component)) {
      add(*tensor);
    } else {
      add(std::get<IndexedSlices>(component).values);
      add(std::get<IndexedSlices>(component).indices);
    }
  }
  return std::to_string(hash);
}

std::string digest_of_worker(const Mirrored& result, int rank) {
  std::vector<Value> part;
  for (const Value& value : result.values()) {
    const auto* tensor = std::get_if<Tensor>(&value);
    const Device& device =
        tensor != nullptr ? tensor->device() : std::get<IndexedSlices>(value).values.device();
    if (device.task() == rank) part.push_back(value);
  }
  return part.empty() ? "none" : digest(Mirrored(part));
}

std::vector<std::string> results_of(const Cluster& cluster, int own, const std::string& spec) {
  const int size = cluster.size();
  const int first = own < 0 ? 0 : own;
  const int count = own < 0 ? size : 1;
  MultiWorkerAllReduce ops(worker_names(size), kDevices, AllReduceSpecs(spec), 0, 0, 10, cluster);
  std::vector<std::string> texts(static_cast<std::size_t>(size), spec);
  std::uint64_t seed = 1;
  for (const DType dtype : {DType::kFloat32, DType::kInt32, DType::kFloat64}) {
    for (const std::size_t elements :
         {std::size_t{0}, std::size_t{1}, std::size_t{1009}, std::size_t{200003}}) {
      if (elements > 100000 && dtype != DType::kFloat32) continue;
      const PerReplica value = replicas(first, count, dtype, elements, seed);
      const ReduceOp op = ++seed % 2 == 0 ? ReduceOp::kSum : ReduceOp::kMean;
      const Mirrored result = ops.reduce(op, value, Destination(value));
      for (int rank = first; rank < first + count; ++rank) {
        texts[static_cast<std::size_t>(rank)].append(" ").append(digest_of_worker(result, rank));
      }
    }
  }
  return texts;
}

}  // namespace onesum::testing
