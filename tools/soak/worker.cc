#include "worker.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <onesum/onesum.h>

namespace onesum::soak {
namespace {

constexpr int kMostDevices = 2;

struct Call {
  ReduceOp op = ReduceOp::kSum;
  std::string spec;
  int devices = 1;
  bool into = false;
  std::vector<std::size_t> elements;  // of each pair
  unsigned values = 0;                // seed
};

template <class Choice>
const Choice& any_of(const std::vector<Choice>& choices, std::mt19937& random) {
  return choices[random() % choices.size()];
}

// Few shapes, so that many calls are known, and some that are long.
Call random_call(std::mt19937& random) {
  static const std::vector<std::string> kSpecs{"auto",  "xring",      "rechd",         "direct",
                                               "pscpu", "nccl/xring", "pscpu/pscpu#2", "nccl/rechd"};
  static const std::vector<std::size_t> kElements{0, 1, 7, 1000, 1021, 65536, 400000};
  Call call;
  call.op = random() % 2 == 0 ? ReduceOp::kSum : ReduceOp::kMean;
  call.spec = any_of(kSpecs, random);
  call.devices = 1 + static_cast<int>(random() % kMostDevices);
  call.into = random() % 2 == 0;
  for (auto pair = 1 + random() % 3; pair > 0; --pair) call.elements.push_back(any_of(kElements, random));
  call.values = static_cast<unsigned>(random());
  return call;
}

// Whole numbers that are small: their sums are exact in any order.
float value_at(unsigned seed, int task, int device, std::size_t pair, std::size_t i) {
  std::uint64_t x = seed + 31U * static_cast<unsigned>(task) + 17U * static_cast<unsigned>(device);
  x = (x * 1000003U + pair) * 1000003U + i;
  x ^= x >> 29;
  x *= 0xbf58476d1ce4e5b9U;
  return static_cast<float>((x >> 40) % 2048);
}

PerReplica values_of(const Call& call, const Device& worker, std::size_t pair) {
  std::vector<Value> replicas;
  for (int device = 0; device < call.devices; ++device) {
    const Device where = Device("CPU:" + std::to_string(device)).canonical(worker.host());
    Tensor tensor = Tensor::empty(DType::kFloat32, {static_cast<std::int64_t>(call.elements[pair])}, where);
    const std::span<float> data = tensor.data<float>();
    for (std::size_t i = 0; i < data.size(); ++i)
      data[i] = value_at(call.values, *worker.task(), device, pair, i);
    replicas.emplace_back(tensor);
  }
  return PerReplica(std::move(replicas));
}

bool is_right(const Call& call, const Cluster& cluster, std::size_t pair, std::span<const float> found) {
  if (found.size() != call.elements[pair]) return false;
  for (std::size_t i = 0; i < found.size(); ++i) {
    double sum = 0;
    for (const Device& worker : cluster.workers()) {
      for (int device = 0; device < call.devices; ++device)
        sum += value_at(call.values, *worker.task(), device, pair, i);
    }
    const double replicas = static_cast<double>(cluster.size()) * call.devices;
    const auto expected = static_cast<float>(sum);
    if (found[i] != (call.op == ReduceOp::kSum ? expected : expected / static_cast<float>(replicas)))
      return false;
  }
  return true;
}

bool is_right(const Call& call, const Cluster& cluster, std::size_t pair, const DistributedValues& result) {
  return std::ranges::all_of(result.values(), [&](const Value& value) {
    Tensor tensor = std::get<Tensor>(value);
    return is_right(call, cluster, pair, tensor.data<float>());
  });
}

class Worker {
 public:
  Worker(Cluster cluster, int rank, Counts& counts)
      : cluster_(std::move(cluster)), rank_(rank), counts_(counts) {
    for (const Device& worker : cluster_.workers()) names_.push_back(worker.to_string());
  }

  void call(const Call& call) {
    MultiWorkerAllReduce& ops = ops_of(call.spec);
    const Device& worker = cluster_.workers()[static_cast<std::size_t>(cluster_.rank())];
    std::vector<PerReplica> values;
    for (std::size_t pair = 0; pair < call.elements.size(); ++pair)
      values.push_back(values_of(call, worker, pair));
    bool is_all_right = true;
    if (call.into) {
      std::vector<PerReplica> results = values;
      ops.batch_reduce_into(call.op, values, results);
      for (std::size_t pair = 0; pair < results.size(); ++pair)
        is_all_right = is_all_right && is_right(call, cluster_, pair, results[pair]);
    } else {
      std::vector<ValueDestination> pairs;
      for (const PerReplica& value : values) pairs.push_back({value, value});
      const std::vector<Mirrored> results = ops.batch_reduce(call.op, pairs);
      for (std::size_t pair = 0; pair < results.size(); ++pair)
        is_all_right = is_all_right && is_right(call, cluster_, pair, results[pair]);
    }
    count(counts_.calls);
    if (is_all_right) return;
    count(counts_.wrong);
    std::printf("worker %d: a wrong result of %s over %d workers\n", rank_, call.spec.c_str(),
                cluster_.size());
  }

  const Cluster& cluster() const { return cluster_; }
  Cluster shrink() {
    Cluster shrunk = cluster_.shrink();
    count(counts_.shrinks);
    return shrunk;
  }

 private:
  void count(std::atomic<std::uint64_t>& counter) {
    counter.fetch_add(1, std::memory_order_relaxed);
    counts_.progress[static_cast<std::size_t>(rank_)].fetch_add(1, std::memory_order_relaxed);
  }

  MultiWorkerAllReduce& ops_of(const std::string& spec) {
    for (auto& [name, ops] : ops_) {
      if (name == spec) return *ops;
    }
    ops_.emplace_back(spec, std::make_unique<MultiWorkerAllReduce>(names_, kMostDevices, AllReduceSpecs(spec),
                                                                   0, 0, 10, cluster_));
    return *ops_.back().second;
  }

  Cluster cluster_;
  std::vector<std::string> names_;
  std::vector<std::pair<std::string, std::unique_ptr<MultiWorkerAllReduce>>> ops_;
  int rank_;
  Counts& counts_;
};

// Of what all workers of the group know: they go on alike.
unsigned seed_of(const Cluster& cluster, unsigned seed, unsigned life) {
  for (const Device& worker : cluster.workers())
    seed = seed * 1000003U + static_cast<unsigned>(*worker.task());
  return (seed * 1000003U + static_cast<unsigned>(cluster.completed_by_all())) * 1000003U + life;
}

void call_until_failure(Worker& worker, unsigned seed, Counts& counts) {
  std::mt19937 random(seed);
  try {
    for (;;) worker.call(random_call(random));
  } catch (const Error& error) {
    counts.verdicts.fetch_add(1, std::memory_order_relaxed);
    if (error.code() == ErrorCode::kAborted || error.code() == ErrorCode::kUnavailable) return;
    counts.unexpected.fetch_add(1, std::memory_order_relaxed);
    std::printf("unexpected: %s\n", error.what());
  }
}

}  // namespace

void work(int rank, unsigned seed, Counts& counts) {
  try {
    auto worker = std::make_unique<Worker>(Cluster::from_environment(), rank, counts);
    for (unsigned life = 0; worker->cluster().size() > 1; ++life) {
      call_until_failure(*worker, seed_of(worker->cluster(), seed, life), counts);
      worker = std::make_unique<Worker>(worker->shrink(), rank, counts);
    }
  } catch (const Error& error) {
    const bool is_expelled = std::string(error.what()).starts_with("expelled: ");
    std::atomic<std::uint64_t>& counter = is_expelled                               ? counts.expelled
                                          : error.code() == ErrorCode::kUnavailable ? counts.cut_off
                                                                                    : counts.unexpected;
    counter.fetch_add(1, std::memory_order_relaxed);
    if (&counter == &counts.unexpected) std::printf("unexpected: %s\n", error.what());
  }
}

}  // namespace onesum::soak
