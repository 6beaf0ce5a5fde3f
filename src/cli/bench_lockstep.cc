#include "cli/bench_lockstep.h"

#include <algorithm>

#include <onesum/cross_device_ops.h>

namespace onesum::cli {
namespace {

constexpr std::size_t kTextBytes = 512;

}  // namespace

Lockstep::Lockstep() = default;

Lockstep::Lockstep(const Cluster& cluster)
    : rank_(static_cast<std::size_t>(cluster.rank())), size_(static_cast<std::size_t>(cluster.size())) {
  if (size_ > 1) {
    ops_ = std::make_unique<ReductionToOneDevice>(std::nullopt, AccumulationFn(), cluster);
  }
}

Lockstep::~Lockstep() = default;

void Lockstep::barrier() {
  if (!ops_) return;
  Cluster cluster = ops_->cluster();
  cluster.barrier();
}

std::vector<std::vector<double>> Lockstep::gather(std::span<const double> own) {
  if (!ops_) return {{own.begin(), own.end()}};
  const auto count = static_cast<std::int64_t>(own.size());
  const Mirrored all =
      ops_->gather(Tensor::from<double>(own, Shape{1, count}, Device("CPU:0")), Destination("CPU:0"), 0);
  const std::span<const double> numbers = all.tensor(0).data<double>();
  std::vector<std::vector<double>> by_rank;
  for (std::size_t r = 0; r < size_; ++r) {
    const auto of_rank = numbers.subspan(r * own.size(), own.size());
    by_rank.emplace_back(of_rank.begin(), of_rank.end());
  }
  return by_rank;
}

std::vector<double> Lockstep::largest(std::span<const double> own) {
  std::vector<double> most(own.begin(), own.end());
  for (const std::vector<double>& one : gather(own)) {
    std::ranges::transform(most, one, most.begin(), [](double a, double b) { return std::max(a, b); });
  }
  return most;
}

double Lockstep::largest(double own) { return largest(std::span(&own, 1)).front(); }

double Lockstep::of_first(double own) { return gather(std::span(&own, 1)).front().front(); }

std::string Lockstep::first_text(const std::string& own) {
  if (!ops_) return own;
  std::vector<std::uint8_t> bytes(kTextBytes);
  std::copy_n(own.begin(), std::min(own.size(), kTextBytes), bytes.begin());
  const auto extent = static_cast<std::int64_t>(kTextBytes);
  const Mirrored all = ops_->gather(
      Tensor::from<std::uint8_t>(std::span<const std::uint8_t>(bytes), Shape{1, extent}, Device("CPU:0")),
      Destination("CPU:0"), 0);
  const std::span<const std::uint8_t> texts = all.tensor(0).data<std::uint8_t>();
  for (std::size_t r = 0; r < size_; ++r) {
    const auto text = texts.subspan(r * kTextBytes, kTextBytes);
    if (text[0] != 0) return {text.begin(), std::ranges::find(text, 0)};
  }
  return {};
}

}  // namespace onesum::cli
