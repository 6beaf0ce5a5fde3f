#include "plan/rules.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "plan/contracts.h"
#include "plan/refuse.h"
#include "plan/text.h"

namespace onesum::plan {

namespace {

bool is_complex(Element element) { return element == Element::kComplex64 || element == Element::kComplex128; }

std::string name_of(std::int32_t buffer) { return fmt::format("b{}", buffer); }

void check_pack(const Plan& plan, std::int32_t number) {
  const Pack& pack = plan.pack(number);
  if (pack.accumulator != pack.output && !is_convertible(pack.accumulator, pack.output)) {
    refuse(fmt::format("pack {}: a sum formed in {} has no meaning in {}", number,
                       to_string(pack.accumulator), to_string(pack.output)));
  }
  const bool adds = pack.contract != Contract::kConcatenate && pack.replicas.size() > 1;
  if ((adds || pack.divisor != 1) && !is_defined(pack.combine, pack.accumulator)) {
    refuse(
        fmt::format("pack {}: {} has no {}", number, to_string(pack.accumulator), to_string(pack.combine)));
  }
  if (pack.divisor != 1 && pack.combine != Combine::kSum) {
    refuse(fmt::format("pack {}: a {} is divided by {}, expected a sum", number, to_string(pack.combine),
                       pack.divisor));
  }
  if (pack.divisor != 1 && is_integer(pack.output)) {
    refuse(fmt::format("pack {}: divided by {} with a result in {}, expected a type with fractions", number,
                       pack.divisor, to_string(pack.output)));
  }
}

void check_types_of_buffers(const Plan& plan) {
  std::unordered_map<std::int32_t, std::int32_t> temporaries;
  std::vector<std::int32_t> first_replica(plan.packs.size(), -1);
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(plan.buffers.size()); ++i) {
    const Buffer& buffer = plan.buffer(i);
    const Pack& pack = plan.pack(buffer.pack);
    if ((buffer.role == Role::kOutput || buffer.role == Role::kInOut) && buffer.element != pack.output) {
      refuse(fmt::format("b{}: a result in {}, pack {} has results in {}", i, to_string(buffer.element),
                         buffer.pack, to_string(pack.output)));
    }
    if (buffer.role == Role::kTemp) {
      const auto [other, is_new] = temporaries.emplace(buffer.index, i);
      if (!is_new) refuse(fmt::format("b{} and b{} are both temporary {}", other->second, i, buffer.index));
    }
    if (buffer.role != Role::kInput && buffer.role != Role::kInOut) continue;
    std::int32_t& first = first_replica[static_cast<std::size_t>(buffer.pack)];
    if (first < 0) first = i;
    if (pack.contract != Contract::kConcatenate && plan.buffer(first).element != buffer.element) {
      refuse(fmt::format("b{} is a replica in {}, b{} one in {}, both of pack {}", first,
                         to_string(plan.buffer(first).element), i, to_string(buffer.element), buffer.pack));
    }
  }
}

// Every chunk of a concatenation is brought by one replica, whose buffer has room for it.
void check_concatenation(const Plan& plan, const BuffersOfPacks& replicas, std::int32_t pack) {
  bringers(plan, replicas, pack);
  for (const std::int32_t number : replicas[static_cast<std::size_t>(pack)]) {
    if (number < 0) continue;
    const Chunks window = plan.buffer(number).window;
    const Chunks brought = brought_by(plan, plan.buffer(number));
    if (brought.first >= window.first && brought.first - window.first < window.count) continue;
    refuse(fmt::format("b{}: no room for chunk {}, which replica {} of pack {} brings", number, brought.first,
                       plan.buffer(number).index, pack));
  }
}

void check_buffers(const Plan& plan) {
  const BuffersOfPacks replicas = replica_buffers(plan);
  check_types_of_buffers(plan);
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(plan.packs.size()); ++i) {
    if (plan.pack(i).contract == Contract::kConcatenate) check_concatenation(plan, replicas, i);
  }
}

// Tells whether a number was marked before since the last clear(), in constant time.
class Marks {
 public:
  explicit Marks(std::size_t size) : marks_(size, 0) {}

  void clear() { ++now_; }
  bool has(std::int32_t number) const { return marks_[static_cast<std::size_t>(number)] == now_; }
  bool mark(std::int32_t number) {  // returns whether it was new
    const bool is_new = !has(number);
    marks_[static_cast<std::size_t>(number)] = now_;
    return is_new;
  }

 private:
  std::vector<std::uint64_t> marks_;
  std::uint64_t now_ = 1;
};

struct Touched {
  explicit Touched(const Plan& plan) : written(plan.buffers.size()), channels(plan.channels.size()) {}
  Marks written;   // buffers
  Marks channels;  // that a step sends on
};

// The rules for one step on a device.
class StepRules {
 public:
  StepRules(const Plan& plan, StepRef ref, Touched& touched)
      : plan_(plan),
        ref_(ref),
        step_(plan.lane(ref.lane).steps[static_cast<std::size_t>(ref.step)]),
        touched_(touched) {}

  void check() const {
    check_place();
    if (step_.op == Op::kRecv || step_.op == Op::kRelease) return;
    check_roles();
    check_runs();
    switch (step_.op) {
      case Op::kCopy:
        return check_copy();
      case Op::kReduce:
        return check_reduce();
      case Op::kNative:
        return check_native();
      default:
        return check_call();
    }
  }

 private:
  template <class... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) const {
    refuse(describe(plan_, ref_) + ": " + fmt::format(format, std::forward<Args>(args)...));
  }

  std::span<const Operand> operands() const {
    return std::span(plan_.operands)
        .subspan(step_.first_operand, std::size_t{step_.num_destinations} + step_.num_sources);
  }

  const Pack& pack() const { return plan_.pack(plan_.buffer(operands().front().buffer).pack); }
  Element element_of(const Operand& operand) const { return plan_.buffer(operand.buffer).element; }

  void check_place() const {
    const std::int32_t rank = plan_.lane(ref_.lane).rank;
    if (plan_.rank_of(step_.device) != rank) {
      fail("on device {} of rank {}, in a lane of rank {}", step_.device, plan_.rank_of(step_.device), rank);
    }
    for (const Operand& operand : operands()) {
      const std::int32_t device = plan_.buffer(operand.buffer).device;
      if (plan_.rank_of(device) == rank) continue;
      fail("{} belongs to rank {}, the lane to rank {}", name_of(operand.buffer), plan_.rank_of(device),
           rank);
    }
  }

  void check_roles() const {
    touched_.written.clear();
    touched_.channels.clear();
    for (const Operand& destination : plan_.destinations(step_)) {
      const Buffer& buffer = plan_.buffer(destination.buffer);
      if (buffer.role == Role::kInput) fail("writes {}, which is an input", name_of(destination.buffer));
      if (buffer.role == Role::kView) fail("writes {}, which is a view", name_of(destination.buffer));
      if (!touched_.written.mark(destination.buffer)) fail("writes {} twice", name_of(destination.buffer));
      if (buffer.role == Role::kSlot && !touched_.channels.mark(buffer.index)) {
        fail("sends twice on channel {}", buffer.index);
      }
    }
    for (const Operand& source : plan_.sources(step_)) {
      if (plan_.buffer(source.buffer).role == Role::kSlot)
        fail("reads {}, which is a slot", name_of(source.buffer));
      const bool may_overwrite = step_.op == Op::kReduce || step_.op == Op::kNative;
      if (!may_overwrite && touched_.written.has(source.buffer)) {
        fail("both reads and writes {}, which only a reduce or a native may", name_of(source.buffer));
      }
    }
  }

  void check_runs() const {
    const Operand& first = operands().front();
    for (const Operand& operand : operands()) {
      if (plan_.buffer(operand.buffer).pack != plan_.buffer(first.buffer).pack) {
        fail("{} is of pack {}, {} of pack {}", name_of(first.buffer), plan_.buffer(first.buffer).pack,
             name_of(operand.buffer), plan_.buffer(operand.buffer).pack);
      }
      if (operand.chunks != first.chunks) {
        fail("{} and {} are different runs of chunks", describe(plan_, first), describe(plan_, operand));
      }
    }
  }

  void check_copy() const {
    const Operand& source = plan_.sources(step_).front();
    for (const Operand& destination : plan_.destinations(step_)) {
      if (element_of(destination) == element_of(source)) continue;
      fail("{} is of type {}, {} of type {}", name_of(source.buffer), to_string(element_of(source)),
           name_of(destination.buffer), to_string(element_of(destination)));
    }
  }

  // What reduce and call share: exact loads, one rounding, and where division happens.
  void check_arithmetic() const {
    for (const Operand& source : plan_.sources(step_)) {
      if (widens_to(element_of(source), step_.accumulator)) continue;
      fail("{} is of type {}, which the accumulator {} cannot hold", name_of(source.buffer),
           to_string(element_of(source)), to_string(step_.accumulator));
    }
    for (const Operand& destination : plan_.destinations(step_)) {
      const Element element = element_of(destination);
      if (element != step_.accumulator && element != pack().output) {
        fail("{} is of type {}, expected the accumulator's {} or the pack's {}", name_of(destination.buffer),
             to_string(element), to_string(step_.accumulator), to_string(pack().output));
      }
      if (element != step_.accumulator && !is_convertible(step_.accumulator, element)) {
        fail("a value in {} has no meaning in {}", to_string(step_.accumulator), to_string(element));
      }
      if (step_.divisor != 1 && is_integer(element)) {
        fail("divides by {} in {}, expected a type with fractions", step_.divisor, to_string(element));
      }
    }
    if (step_.divisor != 1 && step_.accumulator == Element::kBool) fail("divides bool");
  }

  void check_reduce() const {
    const bool converts_only = step_.num_sources == 1 && step_.divisor == 1;
    if (!converts_only && step_.accumulator != pack().accumulator) {
      fail("accumulates in {}, pack {} in {}", to_string(step_.accumulator),
           plan_.buffer(operands().front().buffer).pack, to_string(pack().accumulator));
    }
    if (step_.num_sources > 1 && step_.combine != pack().combine) {
      fail("combines by {}, pack {} by {}", to_string(step_.combine),
           plan_.buffer(operands().front().buffer).pack, to_string(pack().combine));
    }
    if (step_.num_sources > 1 && !is_defined(step_.combine, step_.accumulator)) {
      fail("{} has no {}", to_string(step_.accumulator), to_string(step_.combine));
    }
    check_arithmetic();
  }

  void check_native() const {
    for (const Operand& operand : operands()) {
      const Buffer& buffer = plan_.buffer(operand.buffer);
      if (buffer.role == Role::kSlot || buffer.role == Role::kView) {
        fail("{} is a message; expected memory of a device", name_of(operand.buffer));
      }
      if (buffer.element == element_of(operands().front())) continue;
      fail("{} is of type {}, {} of type {}", name_of(operands().front().buffer),
           to_string(element_of(operands().front())), name_of(operand.buffer), to_string(buffer.element));
    }
    const Element element = element_of(operands().front());
    if (step_.collective != Collective::kBroadcast && pack().combine != Combine::kSum) {
      fail("adds natively, pack {} is a {}", plan_.buffer(operands().front().buffer).pack,
           to_string(pack().combine));
    }
    if (step_.collective != Collective::kBroadcast && !sums_natively(element, pack().accumulator)) {
      fail("adds {} natively, expected a type that native collectives add, and the sum of pack {} in {}",
           to_string(element), plan_.buffer(operands().front().buffer).pack, to_string(pack().accumulator));
    }
    check_native_devices();
  }

  // Which of the rank's devices in the group have a source and a destination.
  void check_native_devices() const {
    const std::int32_t rank = plan_.lane(ref_.lane).rank;
    std::vector<std::int32_t> own;
    for (const std::int32_t device : plan_.group(step_.group).devices) {
      if (plan_.rank_of(device) == rank) own.push_back(device);
    }
    const auto devices_of = [&](std::span<const Operand> list, std::string_view what) {
      std::vector<std::int32_t> devices;
      for (const Operand& operand : list) devices.push_back(plan_.buffer(operand.buffer).device);
      std::ranges::sort(devices);
      const auto twice = std::ranges::adjacent_find(devices);
      if (twice != devices.end()) fail("has two {}s on device {}, expected one", what, *twice);
      for (const std::int32_t device : devices) {
        if (!std::ranges::binary_search(own, device)) {
          fail("has a {} on device {}, which is not in g{}", what, device, step_.group);
        }
      }
      return devices;
    };
    const std::vector<std::int32_t> sources = devices_of(plan_.sources(step_), "source");
    const std::vector<std::int32_t> destinations = devices_of(plan_.destinations(step_), "destination");
    const bool broadcasts = step_.collective == Collective::kBroadcast;
    if (broadcasts && sources.size() > 1) fail("broadcasts {} sources, expected one", sources.size());
    if (step_.collective == Collective::kReduce && destinations.size() > 1) {
      fail("reduces to {} destinations, expected one", destinations.size());
    }
    for (const std::int32_t device : own) {
      const bool is_source = std::ranges::binary_search(sources, device);
      const bool is_destination = std::ranges::binary_search(destinations, device);
      if (!broadcasts && !is_source) fail("lacks a source on device {} of g{}", device, step_.group);
      const bool needs = step_.collective == Collective::kAllReduce || (broadcasts && !is_source);
      if (needs && !is_destination) fail("lacks a destination on device {} of g{}", device, step_.group);
      if (broadcasts && is_source && is_destination) {
        fail("has a source and a destination on device {}, expected one of them", device);
      }
    }
  }

  void check_call() const {
    const Chunks all{0, num_chunks(pack().split)};
    if (operands().front().chunks != all) {
      fail("calls on {}, expected a whole pack", describe(plan_, operands().front()));
    }
    if (pack().combine != Combine::kSum) fail("a function in the place of a {}", to_string(pack().combine));
    check_arithmetic();
  }

  const Plan& plan_;
  StepRef ref_;
  const Step& step_;
  Touched& touched_;  // by this step; cleared where it is used
};

void check_wait(const Plan& plan, StepRef ref, const Step& step) {
  const std::int32_t rank = plan.lane(ref.lane).rank;
  if (plan.lane(step.lane).rank == rank) return;
  refuse(fmt::format("{}, of rank {}, waits for {}, which is of rank {}", describe(plan, ref), rank,
                     describe(plan, StepRef{step.lane, step.step}), plan.lane(step.lane).rank));
}

}  // namespace

bool is_integer(Element element) noexcept {
  if (element == Element::kBool) return false;
  return widens_to(element, Element::kInt128) || widens_to(element, Element::kUInt128);
}

bool adds_natively(Element element) noexcept {
  switch (element) {
    case Element::kBool:
    case Element::kUInt16:
    case Element::kInt16:
    case Element::kComplex64:
    case Element::kComplex128:
    case Element::kInt128:
    case Element::kUInt128:
      return false;
    default:
      return true;
  }
}

bool sums_natively(Element element, Element accumulator) noexcept {
  const bool rounds =
      (element == Element::kFloat16 || element == Element::kBFloat16) && accumulator == Element::kFloat32;
  return adds_natively(element) && (element == accumulator || rounds);
}

bool is_convertible(Element from, Element to) noexcept {
  if (from == Element::kBool || to == Element::kBool) return false;
  if (is_complex(from) || is_complex(to)) return is_complex(from) && is_complex(to);
  return is_integer(from) || !is_integer(to);
}

void check_rules(const Plan& plan) {
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(plan.packs.size()); ++i) check_pack(plan, i);
  check_buffers(plan);
  Touched touched(plan);
  for (std::int32_t lane = 0; lane < static_cast<std::int32_t>(plan.lanes.size()); ++lane) {
    const std::vector<Step>& steps = plan.lane(lane).steps;
    for (std::int32_t i = 0; i < static_cast<std::int32_t>(steps.size()); ++i) {
      const Step& step = steps[static_cast<std::size_t>(i)];
      if (step.op == Op::kWait) {
        check_wait(plan, {lane, i}, step);
      } else if (step.op != Op::kCounts) {
        StepRules(plan, {lane, i}, touched).check();
      }
    }
  }
}

}  // namespace onesum::plan
