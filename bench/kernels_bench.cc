// The host engine: kernels, threads and memory. Bytes per second count each source and destination once.
//
// Compare ratios within one run: `hand_written` is the loop a programmer would write for the same job.
#include <algorithm>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include <benchmark/benchmark.h>

#include "base/element.h"
#include "engine/host/host_engine.h"

namespace onesum::engine {
namespace {

constexpr std::uint8_t kTreeOf2[] = {0, 1};
constexpr std::uint8_t kTreeOf3[] = {0, 1, 1};
constexpr std::uint8_t kTreeOf4[] = {0, 1, 0, 2};
constexpr std::uint8_t kTreeOf6[] = {0, 1, 0, 2, 0, 2};
constexpr std::uint8_t kTreeOf8[] = {0, 1, 0, 2, 0, 1, 0, 3};
constexpr std::uint8_t kTreeOf16[] = {0, 1, 0, 2, 0, 1, 0, 3, 0, 1, 0, 2, 0, 1, 0, 4};
constexpr std::uint8_t kCopy[] = {0};

std::span<const std::uint8_t> tree_of(std::int64_t sources) {
  switch (sources) {
    case 1:
      return kCopy;
    case 2:
      return kTreeOf2;
    case 3:
      return kTreeOf3;
    case 4:
      return kTreeOf4;
    case 6:
      return kTreeOf6;
    case 8:
      return kTreeOf8;
    default:
      return kTreeOf16;
  }
}

// A reduction of whole vectors, cut into segments as an executor would.
class Reduction {
 public:
  Reduction(ThreadedEngine& engine, ReduceForm form, std::size_t count, bool in_place)
      : engine_(engine), form_(form), count_(count) {
    for (std::size_t i = 0; i < form_.merges.size(); ++i)
      from_.push_back(allocate(count * size_of(form_.input)));
    for (std::size_t i = 0; i < form_.destinations; ++i) {
      to_.push_back(in_place ? const_cast<std::byte*>(from_[i]) : allocate(count * size_of(form_.output)));
    }
    kernel_ = engine_.reduce_kernel(form_);
    segment_ = std::max<std::size_t>(64, engine_.segment_bytes() / (traffic() / count_ + 1) / 64 * 64);
  }
  ~Reduction() {
    for (const auto& [memory, bytes] : owned_) engine_.release(memory, bytes);
  }
  Reduction(const Reduction&) = delete;
  Reduction& operator=(const Reduction&) = delete;

  void run_kernel() { kernel_({&form_, to_.data(), from_.data(), 0, count_}); }
  void run() {
    engine_.run_segments(
        static_cast<std::uint32_t>((count_ + segment_ - 1) / segment_),
        [](void* context, std::uint32_t segment) noexcept {
          const auto& r = *static_cast<const Reduction*>(context);
          const std::size_t first = segment * r.segment_;
          r.kernel_({&r.form_, r.to_.data(), r.from_.data(), first, std::min(r.segment_, r.count_ - first)});
        },
        this);
  }
  std::size_t traffic() const {
    return count_ * (from_.size() * size_of(form_.input) + to_.size() * size_of(form_.output));
  }
  float* source(std::size_t i) { return reinterpret_cast<float*>(const_cast<std::byte*>(from_[i])); }

 private:
  std::byte* allocate(std::size_t bytes) {
    void* memory = engine_.allocate(bytes);
    std::memset(memory, 0, bytes);
    owned_.emplace_back(memory, bytes);
    return static_cast<std::byte*>(memory);
  }

  ThreadedEngine& engine_;
  ReduceForm form_;
  std::size_t count_;
  std::size_t segment_ = 0;
  Kernel kernel_ = nullptr;
  std::vector<const std::byte*> from_;
  std::vector<std::byte*> to_;
  std::vector<std::pair<void*, std::size_t>> owned_;
};

void count_bytes(benchmark::State& state, const Reduction& reduction) {
  state.SetBytesProcessed(static_cast<std::int64_t>(reduction.traffic()) * state.iterations());
}

// One kernel call on one element.
void tiny_kernel_call(benchmark::State& state) {
  const auto engine = make_host_engine({.threads = 1, .pool_limit_bytes = {}});
  ReduceForm form;
  form.merges = tree_of(state.range(0));
  Reduction reduction(*engine, form, 1, false);
  for (auto _ : state) reduction.run_kernel();
}
BENCHMARK(tiny_kernel_call)->Arg(1)->Arg(2)->Arg(4)->Arg(6)->Arg(8)->Arg(16);

// One thread, data in the second-level cache: what the instructions cost.
void sum_in_cache(benchmark::State& state) {
  const auto engine = make_host_engine({.threads = 1, .pool_limit_bytes = {}});
  ReduceForm form;
  form.input = static_cast<Element>(state.range(0));
  const bool mean = state.range(2) != 0;
  form.accumulator = accumulator_of(mean ? ReduceOp::kMean : ReduceOp::kSum, form.input);
  form.output = mean && form.input < Element::kFloat16 ? Element::kFloat64 : form.input;
  form.merges = tree_of(state.range(1));
  form.divisor = mean ? state.range(1) : 1;
  const std::size_t bytes = std::size_t{512 << 10} / (form.merges.size() + 1);
  Reduction reduction(*engine, form, bytes / size_of(form.input), false);
  for (auto _ : state) reduction.run_kernel();
  count_bytes(state, reduction);
  state.SetLabel(std::string(to_string(form.input)) + (mean ? " mean of " : " sum of ") +
                 std::to_string(state.range(1)));
}
void sum_in_cache_cases(benchmark::internal::Benchmark* bench) {
  const auto type = [](Element element) { return static_cast<std::int64_t>(element); };
  for (const Element element : {Element::kFloat32, Element::kFloat16, Element::kBFloat16, Element::kInt8}) {
    for (const std::int64_t sources : {1, 2, 3, 4, 6, 8, 16}) bench->Args({type(element), sources, 0});
  }
  for (const Element element : {Element::kFloat64, Element::kInt32, Element::kInt64}) {
    bench->Args({type(element), 2, 0});
  }
  for (const Element element : {Element::kFloat32, Element::kFloat16, Element::kFloat64, Element::kInt32}) {
    bench->Args({type(element), 4, 1});
  }
}
BENCHMARK(sum_in_cache)->Apply(sum_in_cache_cases);

// The same in place: every vector becomes the sum. Arguments: type, vectors, KiB of each.
void all_reduce_in_cache(benchmark::State& state) {
  const auto engine = make_host_engine({.threads = 1, .pool_limit_bytes = {}});
  ReduceForm form;
  form.input = form.output = static_cast<Element>(state.range(0));
  form.accumulator = accumulator_of(ReduceOp::kSum, form.input);
  form.merges = tree_of(state.range(1));
  form.destinations = form.merges.size();
  const auto bytes = static_cast<std::size_t>(state.range(2)) << 10;
  Reduction reduction(*engine, form, bytes / size_of(form.input), true);
  for (auto _ : state) reduction.run_kernel();
  count_bytes(state, reduction);
  state.SetLabel(std::string(to_string(form.input)) + " all-reduce of " + std::to_string(state.range(1)));
}
void all_reduce_in_cache_cases(benchmark::internal::Benchmark* bench) {
  for (const Element element : {Element::kFloat32, Element::kFloat16, Element::kBFloat16, Element::kFloat64,
                                Element::kInt32, Element::kInt64}) {
    for (const std::int64_t vectors : {2, 4}) {
      for (const std::int64_t kib : {4, 64}) bench->Args({static_cast<std::int64_t>(element), vectors, kib});
    }
  }
}
BENCHMARK(all_reduce_in_cache)->Apply(all_reduce_in_cache_cases);

// In place on all threads: every vector becomes the sum. Arguments: vectors, KiB of each.
void all_reduce_in_place(benchmark::State& state) {
  const auto engine = make_host_engine();
  ReduceForm form;
  form.merges = tree_of(state.range(0));
  form.destinations = form.merges.size();
  Reduction reduction(*engine, form, static_cast<std::size_t>(state.range(1)) * 256, true);
  for (auto _ : state) reduction.run();
  count_bytes(state, reduction);
}
BENCHMARK(all_reduce_in_place)->ArgsProduct({{2, 4}, {64, 256, 1024, 8192, 262144}})->UseRealTime();

// Into another vector. Arguments: vectors, KiB of each, whether stores bypass the caches.
void sum_out_of_place(benchmark::State& state) {
  const auto engine = make_host_engine();
  ReduceForm form;
  form.merges = tree_of(state.range(0));
  form.streaming = state.range(2) != 0;
  Reduction reduction(*engine, form, static_cast<std::size_t>(state.range(1)) * 256, false);
  for (auto _ : state) reduction.run();
  count_bytes(state, reduction);
}
BENCHMARK(sum_out_of_place)->ArgsProduct({{1, 2, 4}, {1024, 8192, 104448}, {0, 1}})->UseRealTime();

void hand_written_all_reduce_of_2(benchmark::State& state) {
  const auto engine = make_host_engine({.threads = 1, .pool_limit_bytes = {}});
  ReduceForm form;
  form.merges = kTreeOf2;
  form.destinations = 2;
  const std::size_t count = static_cast<std::size_t>(state.range(0)) * 256;
  Reduction reduction(*engine, form, count, true);
  float* __restrict a = reduction.source(0);
  float* __restrict b = reduction.source(1);
  for (auto _ : state) {
    for (std::size_t i = 0; i < count; ++i) a[i] = b[i] = a[i] + b[i];
    benchmark::ClobberMemory();
  }
  count_bytes(state, reduction);
}
BENCHMARK(hand_written_all_reduce_of_2)->Arg(256)->Arg(8192)->Arg(262144)->UseRealTime();

void run_segments_alone(benchmark::State& state) {
  const auto engine = make_host_engine();
  for (auto _ : state) {
    engine->run_segments(
        static_cast<std::uint32_t>(state.range(0)), [](void*, std::uint32_t) noexcept {}, nullptr);
  }
}
BENCHMARK(run_segments_alone)->Arg(1)->Arg(2)->Arg(64)->UseRealTime();

void allocate_and_release(benchmark::State& state) {
  const auto engine = make_host_engine();
  const auto bytes = static_cast<std::size_t>(state.range(0));
  for (auto _ : state) {
    void* memory = engine->allocate(bytes);
    benchmark::DoNotOptimize(memory);
    engine->release(memory, bytes);
  }
}
BENCHMARK(allocate_and_release)->Arg(64)->Arg(1 << 20)->Arg(64 << 20)->ThreadRange(1, 2)->UseRealTime();

}  // namespace
}  // namespace onesum::engine
