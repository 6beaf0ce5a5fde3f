// What tools/check_instructions counts: calls in which nothing waits and hardly any data is touched, so that
// the instructions are those of the library's own work, and about as many in every run.
//   onesum_instructions CASE       makes the call of a case, the last times inside counted_call()
//   onesum_instructions --ratios   times of all-reduces in place over those of memcpy of the same bytes
// The cases shm_… are for two workers of `onesum run`, of which the first is counted: under valgrind it is so
// slow that mostly the other's message has come before it looks.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <onesum/onesum.h>

// callgrind collects inside this function only, and writes down what it has counted whenever it returns.
extern "C" [[gnu::noinline, gnu::used]] void counted_call(const std::function<void()>& call) {
  call();
  asm volatile("");  // or the call would be a jump, with which the function ends
}

namespace {

using namespace onesum;
using Call = std::function<void()>;

constexpr int kWarmUps = 5;
constexpr int kCounted = 21;
constexpr std::size_t kDevices = 2;

// Memory that is not touched.
PerReplica value(const Shape& shape, std::size_t replicas = kDevices) {
  std::vector<Value> components;
  for (std::size_t d = 0; d < replicas; ++d)
    components.emplace_back(Tensor::empty(DType::kFloat32, shape, "CPU:" + std::to_string(d)));
  return PerReplica(std::move(components));
}

std::vector<PerReplica> ones(std::int64_t elements, std::size_t replicas = kDevices) {
  std::vector<PerReplica> values{value(Shape{elements}, replicas)};
  for (std::size_t d = 0; d < replicas; ++d) {
    Tensor tensor = values[0].tensor(d);
    std::ranges::fill(tensor.data<float>(), 1.0F);
  }
  return values;
}

std::vector<Shape> shapes_of_resnet50() {
  const std::string path = ONESUM_SOURCE_DIR "/bench/shapes/resnet50.txt";
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot read " + path);
  std::vector<Shape> shapes;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name;
    words >> name;
    std::vector<std::int64_t> extents;
    for (std::int64_t extent = 0; words >> extent;) extents.push_back(extent);
    shapes.emplace_back(extents);
  }
  return shapes;
}

// ---- cases ----

// Validated, planned, proved and bound by an object that has seen no call before.
Call planned(const std::vector<Shape>& shapes) {
  std::vector<PerReplica> values;
  for (const Shape& shape : shapes) values.push_back(value(shape));
  return [values = std::move(values)]() mutable {
    ReductionToOneDevice ops;
    const PreparedReduce prepared = ops.prepare(ReduceOp::kSum, values, values);
  };
}

Call prepared() {
  struct State {
    ReductionToOneDevice ops;
    std::vector<PerReplica> values = ones(2);
    PreparedReduce call = ops.prepare(ReduceOp::kSum, values, values);
  };
  return [state = std::make_shared<State>()] { state->call.run(); };
}

// Found in the cache of the object.
Call plain() {
  struct State {
    ReductionToOneDevice ops;
    std::vector<PerReplica> values = ones(2);
  };
  return [state = std::make_shared<State>()] {
    state->ops.batch_reduce_into(ReduceOp::kSum, state->values, state->values);
  };
}

std::vector<std::string> names_of(std::span<const Device> workers) {
  std::vector<std::string> names;
  for (const Device& worker : workers) names.push_back(worker.to_string());
  return names;
}

// Four workers of two devices, inside this process.
Call planned_for_workers(std::vector<Shape> shapes) {
  std::vector<std::string> workers;
  std::vector<Device> devices;
  for (int w = 0; w < 4; ++w) {
    workers.push_back("/job:worker/task:" + std::to_string(w));
    for (int d = 0; d < 2; ++d) devices.emplace_back(workers.back() + "/CPU:" + std::to_string(d));
  }
  std::vector<ReduceSpec> specs;
  for (Shape& shape : shapes) specs.push_back({DType::kFloat32, std::move(shape), devices, devices});
  return [workers, specs] {
    const MultiWorkerAllReduce ops(workers, 2, AllReduceSpecs("auto"));
    const Plan plan = ops.plan(ReduceOp::kSum, specs);
  };
}

struct BetweenProcesses {
  Cluster cluster = Cluster::from_environment();
  MultiWorkerAllReduce ops{names_of(cluster.workers()), 1, AllReduceSpecs("auto"), 0, 0, 10, cluster};
  std::vector<PerReplica> values = ones(2, 1);
};

Call prepared_between_processes() {
  struct State : BetweenProcesses {
    PreparedReduce call = ops.prepare(ReduceOp::kSum, values, values);
  };
  return [state = std::make_shared<State>()] { state->call.run(); };
}

Call plain_between_processes() {
  return [state = std::make_shared<BetweenProcesses>()] {
    state->ops.batch_reduce_into(ReduceOp::kSum, state->values, state->values);
  };
}

int count(const std::string& name) {
  const std::map<std::string, std::function<Call()>> cases = {
      {"plan_1MiB", [] { return planned({Shape{1 << 18}}); }},
      {"plan_resnet50", [] { return planned(shapes_of_resnet50()); }},
      {"plan_resnet50_workers", [] { return planned_for_workers(shapes_of_resnet50()); }},
      {"prepared", prepared},
      {"plain", plain},
      {"shm_prepared", prepared_between_processes},
      {"shm_plain", plain_between_processes},
  };
  const auto found = cases.find(name);
  if (found == cases.end()) {
    std::fprintf(stderr, "onesum_instructions: no case \"%s\"\n", name.c_str());
    return 2;
  }
  const Call call = found->second();
  for (int i = 0; i < kWarmUps; ++i) call();
  for (int i = 0; i < kCounted; ++i) counted_call(call);
  return 0;
}

// ---- ratios ----

double seconds_of(const Call& call, int calls) {
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < calls; ++i) call();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() / calls;
}

double median(std::vector<double> values) {
  std::ranges::nth_element(values, values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2));
  return values[values.size() / 2];
}

void print_ratio(std::size_t bytes) {
  constexpr int kRounds = 11;
  const int calls = static_cast<int>((std::size_t{64} << 20) / bytes);
  ReductionToOneDevice ops;
  std::vector<PerReplica> values = ones(static_cast<std::int64_t>(bytes / sizeof(float)));
  PreparedReduce reduce = ops.prepare(ReduceOp::kSum, values, values);
  const std::vector<char> from(bytes, 1);
  std::vector<char> to(bytes, 2);
  const Call copy = [&] {
    std::memcpy(to.data(), from.data(), bytes);
    asm volatile("" : : "r"(to.data()) : "memory");
  };
  std::vector<double> reduces;
  std::vector<double> copies;
  for (int round = -1; round < kRounds; ++round) {
    const double of_reduce = seconds_of([&] { reduce.run(); }, calls);
    const double of_copy = seconds_of(copy, calls);
    if (round < 0) continue;  // warm-up
    reduces.push_back(of_reduce);
    copies.push_back(of_copy);
  }
  std::printf(R"({"case":"in_place_2_devices","bytes":%zu,"us_reduce":%.2f,"us_memcpy":%.2f,"ratio":%.3f})"
              "\n",
              bytes, median(reduces) * 1e6, median(copies) * 1e6, median(reduces) / median(copies));
}

}  // namespace

int main(int argc, char** argv) try {
  const std::string what = argc == 2 ? argv[1] : "";
  if (what != "--ratios") return count(what);
  for (const std::size_t mebibytes : {1, 64}) print_ratio(mebibytes << 20);
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "onesum_instructions: %s\n", error.what());
  return 1;
}
