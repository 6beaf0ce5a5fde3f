// Deliberate faults in the plans of every algorithm, one at a time: verify refuses each.
#include <algorithm>
#include <functional>
#include <iostream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "collective/proving.h"
#include "plan/refusal.h"
#include "plan/text.h"

namespace onesum::collective {
namespace {

using plan::Op;
using plan::Operand;
using plan::Plan;
using plan::Role;
using plan::Step;

// A step, and where it is.
struct Place {
  plan::Lane* lane = nullptr;
  std::size_t index = 0;
  Step& step() const { return lane->steps[index]; }
  auto position() const { return lane->steps.begin() + static_cast<std::ptrdiff_t>(index); }
  explicit operator bool() const { return lane != nullptr; }
};
using Test = std::function<bool(const Plan&, const Step&)>;

Place first(Plan& plan, const Test& test) {
  for (plan::Lane& lane : plan.lanes) {
    for (std::size_t i = 0; i < lane.steps.size(); ++i) {
      if (test(plan, lane.steps[i])) return {&lane, i};
    }
  }
  return {};
}

Place last(Plan& plan, const Test& test) {
  for (std::size_t l = plan.lanes.size(); l-- > 0;) {
    for (std::size_t i = plan.lanes[l].steps.size(); i-- > 0;) {
      if (test(plan, plan.lanes[l].steps[i])) return {&plan.lanes[l], i};
    }
  }
  return {};
}

bool touches(const Plan& plan, std::span<const Operand> operands, Role role) {
  return std::ranges::any_of(operands, [&](const Operand& o) { return plan.buffer(o.buffer).role == role; });
}
bool is_send(const Plan& plan, const Step& step) {
  return step.op != Op::kRecv && touches(plan, plan.destinations(step), Role::kSlot);
}
bool is_result(const Plan& plan, const Step& step) {
  return touches(plan, plan.destinations(step), Role::kOutput) ||
         touches(plan, plan.destinations(step), Role::kInOut);
}
bool is_recv(const Plan&, const Step& step) { return step.op == Op::kRecv; }
bool is_release(const Plan&, const Step& step) { return step.op == Op::kRelease; }
bool is_sum(const Plan&, const Step& step) { return step.op == Op::kReduce && step.num_sources > 1; }
bool is_finish(const Plan&, const Step& step) { return step.op == Op::kReduce && step.divisor != 1; }
// A finish of what others sent.
bool is_joint_finish(const Plan& plan, const Step& step) {
  return is_finish(plan, step) && touches(plan, plan.sources(step), Role::kView);
}
bool is_partial(const Plan& plan, const Step& step) {
  return step.op == Op::kReduce && step.divisor == 1 && is_send(plan, step);
}
bool is_many(const Plan&, const Step& step) { return step.op == Op::kReduce && step.num_sources > 3; }
bool is_result_and_send(const Plan& plan, const Step& step) {
  return is_result(plan, step) && is_send(plan, step);
}
bool collects(const Plan& plan, const Step& step) {
  return step.op == Op::kCopy && touches(plan, plan.sources(step), Role::kView) && is_result(plan, step);
}

std::span<Operand> operands(Plan& plan, const Step& step) {
  return std::span(plan.operands)
      .subspan(step.first_operand, std::size_t{step.num_destinations} + step.num_sources);
}
std::span<Operand> sources(Plan& plan, const Step& step) {
  return operands(plan, step).subspan(step.num_destinations);
}

bool drop(const Place& place) {
  if (place) place.lane->steps.erase(place.position());
  return static_cast<bool>(place);
}
bool repeat(const Place& place) {
  if (place) place.lane->steps.insert(place.position(), Step(place.step()));
  return static_cast<bool>(place);
}
bool swap_with_next(const Place& place) {
  if (!place || place.index + 1 >= place.lane->steps.size()) return false;
  std::swap(place.step(), place.lane->steps[place.index + 1]);
  return true;
}
bool shift(Plan& plan, const Place& place) {
  const std::uint32_t chunks = plan::num_chunks(plan.packs[0].split);
  if (!place || chunks < 2) return false;
  for (Operand& operand : operands(plan, place.step()))
    operand.chunks = {(operand.chunks.first + 1) % chunks, 1};
  return true;
}
// Moves a step to the beginning of its lane, or to its end.
bool to_front(const Place& place) {
  if (!place || place.index == 0) return false;
  std::rotate(place.lane->steps.begin(), place.position(), place.position() + 1);
  return true;
}
bool divide(const Place& place, std::int64_t divisor) {
  if (place) place.step().divisor = divisor;
  return static_cast<bool>(place);
}
// The last buffer of a role other than the one given.
std::int32_t another(const Plan& plan, Role role, std::int32_t not_this) {
  for (std::int32_t b = static_cast<std::int32_t>(plan.buffers.size()) - 1; b >= 0; --b) {
    if (b != not_this && plan.buffer(b).role == role) return b;
  }
  return not_this;
}
bool retarget(Plan& plan, const Place& place, Role role) {
  if (!place) return false;
  for (Operand& operand : operands(plan, place.step())) {
    if (plan.buffer(operand.buffer).role != role) continue;
    const std::int32_t other = another(plan, role, operand.buffer);
    const bool is_other = other != operand.buffer;
    operand.buffer = other;
    return is_other;
  }
  return false;
}
bool retype(Plan& plan, Role role, Element element) {
  bool changed = false;
  for (plan::Buffer& buffer : plan.buffers) {
    if (buffer.role != role || buffer.element == element) continue;
    buffer.element = element;
    changed = true;
  }
  return changed;
}
bool left_to_right(Plan& plan) {
  const Place place = first(plan, is_many);
  if (!place || plan.order != "canonical") return false;
  bool changed = false;  // where partial sums meet, it may be the canonical order
  for (std::size_t i = 0; i < place.step().num_sources; ++i) {
    std::uint8_t& merges = sources(plan, place.step())[i].merges;
    changed |= merges != (i == 0 ? 0 : 1);
    merges = i == 0 ? 0 : 1;
  }
  return changed;
}

struct Fault {
  const char* what;
  std::function<bool(Plan&)> commit;  // false: there is no place for it in this plan
};

std::vector<Fault> faults_of_messages() {
  return {
      {"drops the first send", [](Plan& p) { return drop(first(p, is_send)); }},
      {"drops the last send", [](Plan& p) { return drop(last(p, is_send)); }},
      {"drops the first receive", [](Plan& p) { return drop(first(p, is_recv)); }},
      {"drops the last receive", [](Plan& p) { return drop(last(p, is_recv)); }},
      {"never releases the first view", [](Plan& p) { return drop(first(p, is_release)); }},
      {"never releases the last view", [](Plan& p) { return drop(last(p, is_release)); }},
      {"sends twice", [](Plan& p) { return repeat(first(p, is_send)); }},
      {"receives twice", [](Plan& p) { return repeat(first(p, is_recv)); }},
      {"releases twice", [](Plan& p) { return repeat(first(p, is_release)); }},
      {"uses the first view too early", [](Plan& p) { return swap_with_next(last(p, is_recv)); }},
      {"releases too early", [](Plan& p) { return to_front(last(p, is_release)); }},
      {"collects before anything else", [](Plan& p) { return to_front(last(p, collects)); }},
      {"sends to another peer", [](Plan& p) { return retarget(p, first(p, is_send), Role::kSlot); }},
      {"reads another view", [](Plan& p) { return retarget(p, first(p, collects), Role::kView); }},
      {"sends the next chunk", [](Plan& p) { return shift(p, first(p, is_send)); }},
      {"receives the next chunk", [](Plan& p) { return shift(p, first(p, is_recv)); }},
      {"turns a channel round",
       [](Plan& p) {
         if (p.channels.empty()) return false;
         std::swap(p.channels[0].from, p.channels[0].to);
         return true;
       }},
      {"has slots of another type", [](Plan& p) { return retype(p, Role::kSlot, Element::kFloat64); }},
      {"has views of another type", [](Plan& p) { return retype(p, Role::kView, Element::kFloat64); }},
      {"receives in another type",
       [](Plan& p) {
         for (plan::Buffer& buffer : p.buffers) {
           if (buffer.role != Role::kView) continue;
           buffer.element = buffer.element == Element::kFloat16 ? Element::kFloat32 : Element::kFloat16;
           return true;
         }
         return false;
       }},
  };
}

std::vector<Fault> faults_of_sums() {
  return {
      {"adds a replica twice",
       [](Plan& p) {
         const Place place = first(p, is_sum);
         if (place) sources(p, place.step())[1].buffer = sources(p, place.step())[0].buffer;
         return static_cast<bool>(place);
       }},
      {"copies instead of adding",
       [](Plan& p) {
         const Place place = first(p, is_sum);
         if (!place) return false;
         place.step().num_sources = 1;
         sources(p, place.step())[0].merges = 0;
         return true;
       }},
      {"forgets to add what is last",
       [](Plan& p) {
         const Place place = first(p, is_sum);
         if (!place) return false;
         std::span<Operand> all = sources(p, place.step());
         all[all.size() - 2].merges =
             static_cast<std::uint8_t>(all[all.size() - 2].merges + all.back().merges - 1);
         --place.step().num_sources;
         return true;
       }},
      {"adds from left to right", left_to_right},
      {"merges once too often",
       [](Plan& p) {
         const Place place = first(p, is_sum);
         if (place) ++sources(p, place.step()).back().merges;
         return static_cast<bool>(place);
       }},
      {"divides twice", [](Plan& p) { return divide(first(p, is_partial), p.packs[0].divisor); }},
      {"does not divide", [](Plan& p) { return divide(first(p, is_finish), 1); }},
      {"divides by another number", [](Plan& p) { return divide(last(p, is_finish), 1000); }},
      {"adds in another type",
       [](Plan& p) {
         const Place place = first(p, is_sum);
         if (place) place.step().accumulator = Element::kFloat64;
         return static_cast<bool>(place);
       }},
      {"rounds partial sums",
       [](Plan& p) {
         if (p.order != "canonical") return false;
         const bool slots = retype(p, Role::kSlot, Element::kFloat16);
         return retype(p, Role::kView, Element::kFloat16) && slots;
       }},
      {"claims an order it does not have",
       [](Plan& p) {
         if (p.order == "canonical") return false;
         p.order = "canonical";
         return true;
       }},
  };
}

std::vector<Fault> faults_of_results() {
  return {
      {"leaves out a result",
       [](Plan& p) {
         const Place place = last(p, is_result_and_send);
         if (!place) return false;
         ++place.step().first_operand;  // results come before messages
         --place.step().num_destinations;
         return true;
       }},
      {"drops the last write of a result", [](Plan& p) { return drop(last(p, is_result)); }},
      {"drops a finish", [](Plan& p) { return drop(first(p, is_finish)); }},
      {"finishes another chunk", [](Plan& p) { return shift(p, first(p, is_finish)); }},
      {"collects another chunk", [](Plan& p) { return shift(p, last(p, collects)); }},
      {"finishes before anything else", [](Plan& p) { return to_front(last(p, is_joint_finish)); }},
      {"runs on a device of another worker",
       [](Plan& p) {
         const Place place = first(p, is_result);
         const auto ranks = p.device_rank;
         const auto other = std::ranges::find_if(ranks, [&](auto rank) { return rank != place.lane->rank; });
         if (other == ranks.end()) return false;
         place.step().device = static_cast<std::int32_t>(other - ranks.begin());
         return true;
       }},
      {"gives a lane to another worker",
       [](Plan& p) {
         if (p.lanes.front().rank == p.lanes.back().rank) return false;
         p.lanes.front().rank = p.lanes.back().rank;
         return true;
       }},
      {"swaps the first steps of two workers",
       [](Plan& p) {
         if (p.lanes.front().rank == p.lanes.back().rank) return false;
         std::swap(p.lanes.front().steps.front(), p.lanes.back().steps.front());
         return true;
       }},
      {"waits for itself",
       [](Plan& p) {
         Step wait;
         wait.op = Op::kWait;
         wait.lane = 0;
         wait.step = static_cast<std::int32_t>(p.lanes[0].steps.size());
         p.lanes[0].steps.insert(p.lanes[0].steps.begin(), wait);
         return true;
       }},
      {"has a chunk more",
       [](Plan& p) {
         if (p.packs[0].split.empty()) return false;
         ++p.packs[0].split.back().parts;
         return true;
       }},
      {"has another divisor",
       [](Plan& p) {
         ++p.packs[0].divisor;
         return true;
       }},
      {"has a destination more",
       [](Plan& p) {
         p.packs[0].destinations.push_back(p.packs[0].destinations.front());
         return true;
       }},
  };
}

TEST(Faults, AreRefusedInThePlansOfEveryAlgorithm) {
  std::vector<Fault> faults = faults_of_messages();
  for (const std::vector<Fault>& more : {faults_of_sums(), faults_of_results()}) {
    faults.insert(faults.end(), more.begin(), more.end());
  }
  std::size_t committed = 0;
  for (const Fault& fault : faults) {
    std::size_t places = 0;
    for (const Scheme& scheme : all_schemes()) {
      for (const Layout& layout : {Layout{3, 2, {}}, Layout{5, 1, {}}, Layout{1, 4, {}}}) {
        for (const bool in_place : {false, true}) {
          Case tried{layout, scheme, ReduceOp::kMean, DType::kFloat16, in_place};
          Plan plan = tried.plan();
          if (!fault.commit(plan)) continue;
          plan::lay_out_operands(plan);
          ++places;
          EXPECT_NE(plan::refusal(plan), "accepted") << tried.name() << " that " << fault.what;
        }
      }
    }
    EXPECT_GT(places, 0U) << fault.what;
    committed += places;
  }
  std::cout << faults.size() << " kinds of faults, committed " << committed << " times\n";
}

}  // namespace
}  // namespace onesum::collective
