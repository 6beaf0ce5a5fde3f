#include "gpu/native_cases.h"

#include <chrono>
#include <complex>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <thread>
#include <type_traits>

#include "gpu/emulator.h"
#include "support/with_type.h"

namespace onesum::testing {
namespace {

using engine::NativeCollective;

constexpr int kUntouched = 77;  // of a destination before the call

template <class Condition>
void await_condition(const Condition& condition, const char* what) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline)
      throw std::runtime_error(std::string(what) + " never came");
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

// The bytes of these numbers in a type. Integers are multiplied by a constant, modulo their size: their sums
// wrap, and are no sums of floats.
std::vector<std::byte> encode(Element element, const std::vector<int>& values) {
  std::vector<std::byte> bytes(values.size() * size_of(element));
  with_type(static_cast<DType>(element), [&](auto zero) {
    using T = decltype(zero);
    for (std::size_t i = 0; i < values.size(); ++i) {
      T value;
      if constexpr (is_half<T>) {
        value = T::from_float(static_cast<float>(values[i]));
      } else if constexpr (is_complex<T>) {
        value = T(static_cast<typename T::value_type>(values[i]));
      } else if constexpr (std::is_integral_v<T>) {
        value = static_cast<T>(static_cast<std::uint64_t>(values[i]) * 0x9e3779b97f4a7c15);
      } else {
        value = static_cast<T>(values[i]);
      }
      std::memcpy(bytes.data() + i * sizeof(T), &value, sizeof(T));
    }
  });
  return bytes;
}

}  // namespace

std::string NativeCase::text() const {
  constexpr const char* kNames[] = {"all-reduce", "reduce", "broadcast"};
  return std::string(kNames[static_cast<std::size_t>(collective)]) + " of " +
         std::string(to_string(element)) + ", root " + std::to_string(root) + (in_place ? ", in place" : "");
}

std::unique_ptr<engine::GpuPlatform> open_platform() {
  emulator();
  engine::GpuSearch search = engine::find_gpus({.plugin = ONESUM_CUDA_PLUGIN});
  if (search.platform == nullptr) throw std::runtime_error(search.reason);
  return std::move(search.platform);
}

void await_ready(engine::Communicator& communicator) {
  await_condition([&] { return communicator.is_ready(); }, "readiness");
}

void await(engine::Mark& mark) {
  await_condition([&] { return mark.is_reached(); }, "a mark");
}

NativeRun::NativeRun(engine::GpuPlatform& platform, engine::Communicator& communicator, int size,
                     std::span<const engine::NativeEngine::Member> members, const NativeCase& what)
    : platform_(platform),
      communicator_(communicator),
      size_(size),
      members_(members.begin(), members.end()),
      what_(what) {
  const bool is_broadcast = what_.collective == NativeCollective::kBroadcast;
  for (std::size_t piece = 0; piece < what_.counts.size(); ++piece) {
    for (std::size_t device = 0; device < members_.size(); ++device) {
      Piece its;
      const bool brings = !is_broadcast || is_root(device);
      const bool gets = what_.collective != NativeCollective::kReduce || is_root(device);
      if (brings) its.source = allocate(device, piece, brought(members_[device].rank, piece));
      if (gets && brings && what_.in_place) {
        if (!is_broadcast) its.destination = its.source;
      } else if (gets) {
        its.destination = allocate(device, piece, std::vector<int>(what_.counts[piece], kUntouched));
      }
      pieces_.push_back(its);
      shares_.push_back({its.source, its.destination});
    }
  }
  for (const auto& member : members_) marks_.push_back(platform_.device(member.device).make_mark());
}

NativeRun::~NativeRun() {
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    engine::QueuedEngine& engine = platform_.device(members_[i % members_.size()].device);
    const std::size_t size = bytes(i / members_.size());
    const Piece& its = pieces_[i];
    if (its.source != nullptr) engine.release(its.source, size);
    if (its.destination != nullptr && its.destination != its.source) engine.release(its.destination, size);
  }
}

void NativeRun::give() {
  communicator_.give({what_.collective, what_.element, what_.root, what_.counts, shares_});
}

void NativeRun::record() {
  for (std::size_t device = 0; device < members_.size(); ++device) {
    communicator_.queue(device).record(*marks_[device]);
  }
}

bool NativeRun::is_reached() {
  for (const auto& mark : marks_) {
    if (!mark->is_reached()) return false;
  }
  return true;
}

void NativeRun::await_marks() {
  for (const auto& mark : marks_) await(*mark);
}

std::string NativeRun::find_faults() {
  std::string faults;
  for (std::size_t piece = 0; piece < what_.counts.size(); ++piece) {
    for (std::size_t device = 0; device < members_.size(); ++device) {
      const Piece& its = pieces_[piece * members_.size() + device];
      if (its.destination != nullptr) faults += compare(device, piece, its.destination, result(piece));
      if (its.source != nullptr && its.source != its.destination) {
        faults += compare(device, piece, its.source, brought(members_[device].rank, piece));
      }
    }
  }
  return faults;
}

std::vector<int> NativeRun::brought(int rank, std::size_t piece) const {
  std::vector<int> values(what_.counts[piece]);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<int>((static_cast<std::size_t>(rank) * 3 + piece * 5 + i) % 7);
  }
  return values;
}

std::vector<int> NativeRun::result(std::size_t piece) const {
  if (what_.collective == NativeCollective::kBroadcast) return brought(what_.root, piece);
  std::vector<int> sum(what_.counts[piece]);
  for (int rank = 0; rank < size_; ++rank) {
    const std::vector<int> more = brought(rank, piece);
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += more[i];
  }
  return sum;
}

std::byte* NativeRun::allocate(std::size_t device, std::size_t piece, const std::vector<int>& values) {
  if (values.empty()) return nullptr;
  engine::QueuedEngine& engine = platform_.device(members_[device].device);
  auto* const memory = static_cast<std::byte*>(engine.allocate(bytes(piece)));
  const std::vector<std::byte> filling = encode(what_.element, values);
  void* const staging = engine.allocate_staging(filling.size());
  std::memcpy(staging, filling.data(), filling.size());
  copy(device, memory, static_cast<std::byte*>(staging), filling.size());
  engine.release_staging(staging, filling.size());
  return memory;
}

void NativeRun::copy(std::size_t device, std::byte* destination, const std::byte* source, std::size_t size) {
  engine::QueuedEngine& engine = platform_.device(members_[device].device);
  const std::unique_ptr<engine::Mark> mark = engine.make_mark();
  engine.queue(0).copy_rows({destination, size, source, size, size, 1});
  engine.queue(0).record(*mark);
  await(*mark);
}

std::string NativeRun::compare(std::size_t device, std::size_t piece, const std::byte* memory,
                               const std::vector<int>& expected) {
  engine::QueuedEngine& engine = platform_.device(members_[device].device);
  const std::vector<std::byte> right = encode(what_.element, expected);
  void* const staging = engine.allocate_staging(right.size());
  copy(device, static_cast<std::byte*>(staging), memory, right.size());
  const bool is_right = std::memcmp(staging, right.data(), right.size()) == 0;
  engine.release_staging(staging, right.size());
  if (is_right) return "";
  return what_.text() + ": rank " + std::to_string(members_[device].rank) + " of " + std::to_string(size_) +
         " has a wrong piece " + std::to_string(piece) + "\n";
}

std::string run_case(engine::GpuPlatform& platform, engine::Communicator& communicator, int size,
                     std::span<const engine::NativeEngine::Member> members, const NativeCase& what) {
  NativeRun run(platform, communicator, size, members, what);
  await_ready(communicator);
  run.give();
  await_ready(communicator);
  run.record();
  run.await_marks();
  return run.find_faults();
}

std::vector<NativeCase> cases_between_processes() {
  return {{NativeCollective::kAllReduce, Element::kFloat32, -1, false, {3, 0, 100000}},
          {NativeCollective::kReduce, Element::kBFloat16, 3, true, {17, 5}},
          {NativeCollective::kReduce, Element::kInt64, 0, false, {17, 5}},
          {NativeCollective::kBroadcast, Element::kInt16, 0, true, {1, 2, 3}},
          {NativeCollective::kBroadcast, Element::kFloat64, 2, false, {9}}};
}

}  // namespace onesum::testing
