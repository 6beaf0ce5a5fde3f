// What a call costs besides the data: 161 tensors on 4 workers of 2 devices, planned anew, found in the
// cache, and prepared; the tensors are empty, so that nothing is left but the call. With one element each,
// every tensor is a piece of its own in every message.
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include <onesum/onesum.h>

namespace {

using namespace onesum;

constexpr int kWorkers = 4;
constexpr int kDevices = 2;
constexpr std::size_t kTensors = 161;

struct Call {
  std::vector<std::string> workers;
  std::vector<PerReplica> values;

  explicit Call(std::int64_t elements) {
    for (int w = 0; w < kWorkers; ++w) workers.push_back("/job:worker/task:" + std::to_string(w));
    for (std::size_t t = 0; t < kTensors; ++t) {
      std::vector<Value> components;
      for (const std::string& worker : workers) {
        for (int d = 0; d < kDevices; ++d) {
          const Device device(worker + "/CPU:" + std::to_string(d));
          components.emplace_back(Tensor::empty(DType::kFloat32, Shape{elements}, device));
        }
      }
      values.emplace_back(std::move(components));
    }
  }

  MultiWorkerAllReduce ops(const std::string& spec) const {
    return {workers, kDevices, AllReduceSpecs(spec)};
  }
};

void cold_plan(benchmark::State& state, const std::string& spec) {
  Call call(state.range(0));
  std::vector<ReduceSpec> specs;
  for (const PerReplica& value : call.values) {
    const std::vector<Device> devices = value.devices();
    specs.push_back({DType::kFloat32, Shape{state.range(0)}, devices, devices});
  }
  for (auto _ : state) {
    const auto ops = call.ops(spec);
    benchmark::DoNotOptimize(ops.plan(ReduceOp::kSum, specs));
  }
}

void cached_call(benchmark::State& state, const std::string& spec) {
  Call call(state.range(0));
  auto ops = call.ops(spec);
  for (auto _ : state) ops.batch_reduce_into(ReduceOp::kSum, call.values, call.values);
}

void prepared_call(benchmark::State& state, const std::string& spec) {
  Call call(state.range(0));
  auto ops = call.ops(spec);
  auto prepared = ops.prepare(ReduceOp::kSum, call.values, call.values);
  for (auto _ : state) prepared.run();
}

BENCHMARK_CAPTURE(cold_plan, auto, "auto") -> Arg(1);
BENCHMARK_CAPTURE(cold_plan, default, "pscpu/pscpu#2")->Arg(1);
BENCHMARK_CAPTURE(cold_plan, xring, "xring")->Arg(1);
BENCHMARK_CAPTURE(cached_call, auto, "auto") -> Arg(0) -> Arg(1);
BENCHMARK_CAPTURE(cached_call, default, "pscpu/pscpu#2")->Arg(0)->Arg(1);
BENCHMARK_CAPTURE(prepared_call, auto, "auto") -> Arg(0) -> Arg(1);
BENCHMARK_CAPTURE(prepared_call, default, "pscpu/pscpu#2")->Arg(0)->Arg(1);

}  // namespace
