#include "same_bits.h"

#include <functional>
#include <iterator>
#include <span>
#include <type_traits>
#include <utility>

#include <gtest/gtest.h>

#include "plan/simulate.h"
#include "support/bits.h"
#include "support/canonical_sum.h"
#include "support/tensors.h"
#include "support/with_type.h"

namespace onesum::testing {
namespace {

using Contents = std::vector<std::byte>;

// Every second element has two huge numbers that cancel, at two of the first six replicas that differ from
// element to element, and small ones elsewhere, which are lost where they meet a huge one first. The others
// have many exponents, zeros and subnormals.
double cancelling(std::size_t replica, std::size_t i, double huge) {
  if (i % 2 == 0) {
    constexpr double kNumbers[] = {1e8, 1, -1e8, 0x1p-24, -0.0, 3, -1e4, 0x1p-140, 1e4, -1};
    return kNumbers[(replica * 3 + i) % std::size(kNumbers)];
  }
  const std::size_t pair = i / 2 % 30;
  const std::size_t first = pair % 6;
  const std::size_t second = (first + 1 + pair / 6) % 6;
  if (replica == first) return huge;
  return replica == second ? -huge : 0x1p-11 * static_cast<double>(replica % 3 + 1);
}

template <class T>
Contents cancelling_contents(std::size_t replica, std::size_t elements) {
  Contents contents;
  for (std::size_t i = 0; i < elements; ++i) {
    T value{};
    constexpr bool kIsWide = std::is_same_v<T, double> || std::is_same_v<T, std::complex<double>>;
    constexpr double kHuge = kIsWide ? 0x1p45 : 0x1p15;
    const double number = cancelling(replica, i, kHuge);
    if constexpr (is_half<T>) {
      value = T::from_float(static_cast<float>(number));
    } else if constexpr (std::is_integral_v<T>) {
      value = static_cast<T>(static_cast<std::int64_t>(number * 1e9));
    } else if constexpr (std::is_floating_point_v<T>) {
      value = static_cast<T>(number);
    } else {
      using Part = typename T::value_type;
      value = T(static_cast<Part>(number), static_cast<Part>(cancelling(replica, i + 1, kHuge)));
    }
    const auto bytes = std::as_bytes(std::span(&value, 1));
    contents.insert(contents.end(), bytes.begin(), bytes.end());
  }
  return contents;
}

Contents contents_of(DType dtype, std::size_t tensor, std::size_t replica, std::size_t elements) {
  if (tensor % 3 == 2) {
    return with_type(dtype,
                     [&](auto zero) { return cancelling_contents<decltype(zero)>(replica, elements); });
  }
  Contents contents(elements * size_of(dtype));
  fill(contents, dtype, tensor % 3 == 0 ? Fill::kPlain : Fill::kWild, tensor * 977 + replica);
  return contents;
}

std::vector<std::string> algorithms_where(const std::function<bool(bool)>& wanted) {
  const std::vector<std::string> names{
      "nccl",     "rechd",    "pscpu",    "psgpu", "direct", "hierarchical_copy",
      "exchange", "machines", "doubling", "pool",  "xring"};
  std::vector<std::string> all;
  const auto is_ring = [](const std::string& name) { return name == "xring"; };
  for (const std::string& name : names) {
    if (wanted(is_ring(name))) all.push_back(name);
  }
  for (const std::string& inside : names) {
    for (const std::string& across : names) {
      if (wanted(is_ring(inside) || is_ring(across)))
        all.push_back(std::string(inside).append("/").append(across));
    }
  }
  return all;
}

}  // namespace

std::string Layout::name() const {
  return std::to_string(workers) + " workers of " + std::to_string(devices);
}

std::vector<Layout> layouts_of(int devices) {
  std::vector<Layout> layouts;
  for (int workers = 1; workers <= devices; ++workers) {
    if (devices % workers == 0) layouts.push_back({workers, devices / workers});
  }
  return layouts;
}

std::vector<std::string> worker_names(int workers) {
  std::vector<std::string> names;
  for (int w = 0; w < workers; ++w) names.push_back("/job:worker/replica:0/task:" + std::to_string(w));
  return names;
}

std::string device_name(int worker, int device) {
  return worker_names(worker + 1).back() + "/device:CPU:" + std::to_string(device);
}

std::vector<std::string> device_names(const Layout& layout) {
  std::vector<std::string> names;
  for (int w = 0; w < layout.workers; ++w) {
    for (int g = 0; g < layout.devices; ++g) names.push_back(device_name(w, g));
  }
  return names;
}

const std::vector<std::string>& canonical_algorithms() {
  static const std::vector<std::string> all = algorithms_where([](bool has_ring) { return !has_ring; });
  return all;
}

const std::vector<std::string>& ring_algorithms() {
  static const std::vector<std::string> all = algorithms_where([](bool has_ring) { return has_ring; });
  return all;
}

std::vector<Shape> many_shapes(std::size_t replicas) {
  const auto n = static_cast<std::int64_t>(replicas);
  return {Shape{},   Shape{n - 1}, Shape{7, 31}, Shape{2},    Shape{n + 1},
          Shape{13}, Shape{0},     Shape{1},     Shape{3, 0}, Shape{311}};
}

std::vector<Shape> few_shapes(std::size_t replicas) {
  const auto n = static_cast<std::int64_t>(replicas);
  return {Shape{}, Shape{n - 1}, Shape{61}, Shape{0}, Shape{n + 1}};
}

SameBitsBatch::SameBitsBatch(DType dtype, std::size_t replicas, std::vector<Shape> shapes)
    : dtype_(dtype), shapes_(std::move(shapes)) {
  for (std::size_t t = 0; t < shapes_.size(); ++t) {
    std::vector<Contents> tensor;
    for (std::size_t r = 0; r < replicas; ++r) {
      tensor.push_back(contents_of(dtype, t, r, shapes_[t].elements()));
    }
    sums_.push_back(canonical_result(ReduceOp::kSum, dtype, tensor));
    means_.push_back(canonical_result(ReduceOp::kMean, dtype, tensor));
    contents_.push_back(std::move(tensor));
  }
}

std::vector<PerReplica> SameBitsBatch::on(const std::vector<std::string>& devices) const {
  std::vector<PerReplica> values;
  for (std::size_t t = 0; t < shapes_.size(); ++t) {
    std::vector<Tensor> tensors;
    for (std::size_t r = 0; r < devices.size(); ++r) {
      tensors.push_back(Tensor::borrow(contents_[t].at(r).data(), dtype_, shapes_[t], Device(devices[r])));
    }
    values.emplace_back(std::move(tensors));
  }
  return values;
}

// Packs of one type follow each other as the tensors do, whatever parts of them they are.
std::vector<Contents> simulated_batch(const CrossDeviceOps& ops, ReduceOp op,
                                      const std::vector<PerReplica>& values) {
  const Plan plan = ops.plan(op, to_own_devices(values));
  const std::size_t element_bytes = size_of(values.front().tensor(0).dtype());
  plan::BytesOfPacks inputs(plan.pack_elements().size());
  for (std::size_t r = 0; r < values.front().size(); ++r) {
    Contents all;
    for (const PerReplica& value : values) {
      const Contents bytes = bytes_of(value.tensor(r));
      all.insert(all.end(), bytes.begin(), bytes.end());
    }
    auto at = all.begin();
    for (std::size_t p = 0; p < inputs.size(); ++p) {
      const auto end = at + static_cast<std::ptrdiff_t>(plan.pack_elements()[p] * element_bytes);
      inputs[p].emplace_back(at, end);
      at = end;
    }
    EXPECT_EQ(at, all.end()) << "packs do not have all elements";
  }
  const plan::BytesOfPacks packs = plan::simulate(plan.value(), {plan.pack_elements(), {}}, inputs);
  Contents all;
  for (const std::vector<Contents>& pack : packs) {
    for (const Contents& result : pack) {
      EXPECT_TRUE(same_bits(result_dtype(op, values.front().tensor(0).dtype()), result, pack[0]))
          << "simulated results differ";
    }
    all.insert(all.end(), pack.at(0).begin(), pack[0].end());
  }
  std::vector<Contents> results;
  auto at = all.begin();
  for (const PerReplica& value : values) {
    const std::size_t bytes =
        value.tensor(0).shape().elements() * size_of(result_dtype(op, value.tensor(0).dtype()));
    results.emplace_back(at, at + static_cast<std::ptrdiff_t>(bytes));
    at += static_cast<std::ptrdiff_t>(bytes);
  }
  return results;
}

::testing::AssertionResult all_hold(const std::vector<PerReplica>& results,
                                    const std::vector<Contents>& expected) {
  if (results.size() != expected.size()) {
    return ::testing::AssertionFailure() << results.size() << " results, expected " << expected.size();
  }
  for (std::size_t t = 0; t < results.size(); ++t) {
    const ::testing::AssertionResult same = all_hold(results[t], expected[t]);
    if (!same) return ::testing::AssertionFailure() << "tensor " << t << ": " << same.message();
  }
  return ::testing::AssertionSuccess();
}

std::string SameBitsCase::name() const {
  return (op == ReduceOp::kSum ? "sum by " : "mean by ") + algorithm + "#" + std::to_string(shards) + " in " +
         std::to_string(num_packs) + " packs of " + std::string(to_string(dtype)) + " on " + layout.name() +
         ", " + std::string(name_of(way));
}

SameBitsCase SameBitsTurns::next(const std::string& algorithm, const Layout& layout, DType dtype) {
  constexpr int kPacks[] = {0, 1, 3};
  std::size_t turn = turns_[algorithm]++;
  const auto take = [&](std::size_t choices) {
    const std::size_t choice = turn % choices;
    turn /= choices;
    return choice;
  };
  SameBitsCase point{algorithm, 1, 0, layout, dtype, ReduceOp::kSum, Way::kReturned};
  point.way = kAllWays[turn % std::size(kAllWays)];
  point.shards = static_cast<int>(take(3)) + 1;
  point.num_packs = kPacks[take(3)];
  point.op = take(2) == 0 ? ReduceOp::kSum : ReduceOp::kMean;
  return point;
}

MultiWorkerAllReduce ops_of(const SameBitsCase& point) {
  return MultiWorkerAllReduce(worker_names(point.layout.workers), point.layout.devices,
                              AllReduceSpec{point.algorithm, point.shards}, point.num_packs);
}

void expect_canonical_bits(const SameBitsCase& point, const SameBitsBatch& batch) {
  MultiWorkerAllReduce ops = ops_of(point);
  expect_canonical_bits(point, batch, ops, batch.on(device_names(point.layout)));
}

void expect_canonical_bits(const SameBitsCase& point, const SameBitsBatch& batch, CrossDeviceOps& ops,
                           const std::vector<PerReplica>& values) {
  const Way way = is_possible(point.way, point.op, values.front()) ? point.way : Way::kInto;
  EXPECT_TRUE(all_hold(reduced(ops, point.op, values, way), batch.expected(point.op))) << point.name();
}

void expect_simulated_bits(const SameBitsCase& point, const SameBitsBatch& batch) {
  SCOPED_TRACE(point.name());
  MultiWorkerAllReduce ops = ops_of(point);
  const std::vector<PerReplica> values = batch.on(device_names(point.layout));
  const Way way = is_possible(point.way, point.op, values.front()) ? point.way : Way::kInto;
  const std::vector<Contents> expected = simulated_batch(ops, point.op, values);
  for (int run = 0; run < 2; ++run) {
    EXPECT_TRUE(all_hold(reduced(ops, point.op, values, way), expected)) << "run " << run;
  }
}

Quiet::Quiet() {
  for (const LogLevel level : {LogLevel::kWarning, LogLevel::kInfo, LogLevel::kDebug}) {
    if (is_logged(level)) before_ = level;
  }
  set_log_level(LogLevel::kError);
}

Quiet::~Quiet() { set_log_level(before_); }

}  // namespace onesum::testing
