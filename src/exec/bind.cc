#include "exec/bind.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include <onesum/error.h>

#include "exec/bind_native.h"
#include "exec/bind_work.h"
#include "exec/layout.h"
#include "exec/lending.h"
#include "exec/scene.h"
#include "exec/staging.h"
#include "exec/units.h"
#include "exec/work.h"

namespace onesum::exec {
namespace {

using plan::Buffer;
using plan::Op;
using plan::Operand;
using plan::PackMember;
using plan::PackTable;
using plan::Role;
using plan::Step;

// Messages between lanes of one process wait in memory of a fixed size, too.
constexpr engine::Limits kLocalLimits{std::size_t{1} << 20, UINT32_MAX, 1};

// Shorter messages are copied sooner than they are described.
constexpr std::size_t kLeastLent = 2048;

class Binder {
 public:
  Binder(const plan::Plan& plan, std::span<const PackTable> tables, std::size_t tensor_slots,
         const Site& site)
      : plan_(plan),
        tables_(tables),
        host_(site.host),
        units_(plan.device_rank.size(), site.queued),
        communicators_(site.communicators),
        own_(site.own),
        messages_(messages_of(plan)),
        rounds_(rounds_of(plan, messages_, tables, site.limits.bytes == 0 ? kLocalLimits : site.limits)),
        slots_(plan, messages_, tensor_slots, site.own,
               {site.limits.phases, site.near,
                site.near.empty() ? 0 : fullest_outbox(plan, messages_, rounds_, site.limits)},
               rounds_.size(), units_.all().empty() ? 0 : plan.lanes.size()),
        program_(std::make_shared<Program>()) {
    program_->host = &host_;
    program_->queued = units_.all();
    program_->tensor_slots = tensor_slots;
    program_->peers = slots_.peers;
    program_->phases = slots_.phases;
    program_->turns = slots_.turns;
    program_->window = Modulus(slots_.window);
    program_->memory.resize(slots_.of_round);
    const auto lends = [](const engine::NearBoxes& near) { return near.lends; };
    if (own_ && !slots_.peers.empty() && units_.all().empty() && std::ranges::any_of(slots_.near, lends)) {
      lending_ = lending_of(plan, messages_, *own_);
    }
    memory(slots_.local_messages).is_staging = !units_.all().empty();
    find_call_results();
  }

  std::shared_ptr<const Program> bind() {
    for (std::size_t r = 0; r < rounds_.size(); ++r) {
      const Layout layout(plan_, messages_, rounds_[r], slots_, own_, r);
      layout_ = &layout;
      bind_round();
    }
    program_->native_ranks = ranks_joined_here();
    program_->skeleton = skeleton_.finish();
    choose_kernels(*program_);
    return program_;
  }

 private:
  const Buffer& buffer(const Operand& operand) const { return plan_.buffer(operand.buffer); }
  const PackTable& table(std::int32_t pack) const { return *layout_->table(pack); }

  std::vector<int> ranks_joined_here() const {
    std::vector<int> ranks = ranks_in_native_groups(plan_);
    if (!own_ || std::ranges::find(ranks, *own_) == ranks.end()) ranks.clear();
    return ranks;
  }

  void bind_round() {
    BoundRound round;
    round.first_lane = static_cast<std::uint32_t>(program_->lanes.size());
    reserve_memory();
    add_postings(round);
    add_to_skeleton();
    number_lanes();
    for (std::size_t lane = 0; lane < plan_.lanes.size(); ++lane) {
      if (kept_[lane].empty() || kept_[lane].back() == 0) continue;
      bind_lane(lane);
    }
    round.num_lanes = static_cast<std::uint32_t>(program_->lanes.size()) - round.first_lane;
    for (std::uint32_t lane = 0; lane < round.num_lanes; ++lane) {
      count_waits(program_->lanes[round.first_lane + lane]);
    }
    add_landings(round);
    program_->rounds.push_back(round);
  }

  void bind_lane(std::size_t lane) {
    const auto first = static_cast<std::uint32_t>(program_->steps.size());
    staging_ = slots_.staging + static_cast<std::uint32_t>(lane);
    const Scene scene{plan_,
                      *layout_,
                      units_,
                      own_,
                      program_->postings,
                      number_of_message_,
                      staging_ + slots_.turn(layout_->number())};
    const std::vector<Step>& steps = plan_.lanes[lane].steps;
    for (std::size_t s = 0; s < steps.size(); ++s) {
      const std::size_t before = program_->steps.size();
      if (is_kept(lane, s)) bind_step(steps[s], scene);
      if (lends_ && lending_.overwrites[lane][s]) {
        for (std::size_t b = before; b < program_->steps.size(); ++b) {
          program_->steps[b].overwrites_lent = true;
        }
      }
      ends_[lane][s] = static_cast<std::uint32_t>(program_->steps.size()) - first;
    }
    const auto bound = static_cast<std::uint32_t>(program_->steps.size()) - first;
    choose_units_of_waits(std::span(program_->steps).subspan(first, bound));
    program_->lanes.push_back({first, bound, static_cast<std::int32_t>(lane)});
  }

  // A step of the plan may have become several, in lanes that were bound later, too.
  void count_waits(const BoundLane& lane) {
    for (std::uint32_t s = 0; s < lane.num_steps; ++s) {
      BoundStep& step = program_->steps[lane.first_step + s];
      if (step.op != Op::kWait) continue;
      step.wait_steps = ends_[step.wait_lane][step.wait_steps];
      step.wait_lane = lane_numbers_[step.wait_lane];
    }
  }

  // What waits does so where the next work is done, or, at the end of a lane, where the last was.
  static void choose_units_of_waits(std::span<BoundStep> steps) {
    Unit unit = kHost;
    for (const BoundStep& step : steps) {
      if (plan::is_work(step.op)) unit = step.unit;
    }
    for (std::size_t s = steps.size(); s-- > 0;) {
      if (plan::is_work(steps[s].op)) unit = steps[s].unit;
      steps[s].unit = unit;
    }
  }

  Memory& memory(std::uint32_t slot) { return program_->memory[slot - program_->tensor_slots]; }

  // The memory of what a call gives is the call's.
  void find_call_results() {
    is_call_result_.resize(plan_.buffers.size());
    for (const plan::Lane& lane : plan_.lanes) {
      for (const Step& step : lane.steps) {
        if (step.op != Op::kCall) continue;
        is_call_result_[static_cast<std::size_t>(plan_.destinations(step).front().buffer)] = true;
      }
    }
  }

  // As much as the largest round needs: rounds that are not under way at the same time share it.
  void reserve_memory() {
    const auto reserve = [&](std::uint32_t slot, std::size_t bytes) {
      memory(slot).bytes = std::max(memory(slot).bytes, bytes);
    };
    for (std::size_t b = 0; b < plan_.buffers.size(); ++b) {
      const Buffer& temp = plan_.buffers[b];
      if (temp.role != Role::kTemp || layout_->table(temp.pack) == nullptr) continue;
      if (!is_own(temp.device) || is_call_result_[b]) continue;
      reserve(slots_.temporaries[b], layout_->bytes_of_temporary(temp));
      memory(slots_.temporaries[b]).unit = units_.of(temp.device);
    }
    reserve(slots_.local_messages, layout_->mail().local_bytes);
  }

  bool is_own(std::int32_t device) const { return !own_ || plan_.rank_of(device) == *own_; }

  void add_postings(BoundRound& round) {
    round.first_posting = static_cast<std::uint32_t>(program_->postings.size());
    round.first_incoming = static_cast<std::uint32_t>(program_->incoming.size());
    number_of_message_.assign(messages_.all.size(), 0);
    lends_ = false;
    for (std::size_t m = 0; m < messages_.all.size(); ++m) {
      const Posting& posting = layout_->mail().postings[m];
      if (posting.way == Way::kForeign) continue;
      number_of_message_[m] = static_cast<std::uint32_t>(program_->postings.size());
      program_->postings.push_back(posting);
      lend(m, program_->postings.back());
      if (posting.way == Way::kIncoming) program_->incoming.push_back(program_->postings.back().place);
    }
    add_greetings();
    round.num_postings = static_cast<std::uint32_t>(program_->postings.size()) - round.first_posting;
    round.num_incoming = static_cast<std::uint32_t>(program_->incoming.size()) - round.first_incoming;
  }

  // What a message carries stays in tensors, if that is possible and worth it.
  void lend(std::size_t message, Posting& posting) {
    if (lending_.of_message.empty() || posting.way == Way::kLocal) return;
    const Operand* const tensor = lending_.of_message[message].tensor;
    const bool can_be = tensor != nullptr && posting.place.box == engine::Box::kPair &&
                        slots_.near[static_cast<std::size_t>(posting.place.peer)].lends;
    if (!can_be || posting.place.bytes < kLeastLent || table(buffer(*tensor).pack).outer != 1) return;
    if (posting.way == Way::kIncoming && wants_streaming(*tensor)) return;
    const std::vector<Stretch> stretches = stretches_of(*tensor);
    if (stretches.size() > kMostStretches) return;
    posting.first_stretch = static_cast<std::uint32_t>(program_->stretches.size());
    posting.num_stretches = static_cast<std::uint32_t>(stretches.size());
    posting.place.is_lent = true;
    posting.is_written = posting.way == Way::kIncoming;
    lends_ |= posting.way == Way::kOutgoing;
    for (const Stretch& stretch : stretches) {
      program_->stretches.push_back({static_cast<std::uint32_t>(program_->pointers.size()), stretch.bytes});
      program_->pointers.push_back(stretch.begin);
    }
  }

  // Whether a result is so large that it is better copied by stores that bypass the caches.
  bool wants_streaming(const Operand& tensor) const {
    const PackTable& whole = tables_[static_cast<std::size_t>(buffer(tensor).pack)];
    return buffer(tensor).role == Role::kOutput &&
           host_.prefers_streaming(whole.elements() * whole.outer * size_of(buffer(tensor).element));
  }

  struct Stretch {
    PointerSource begin;
    std::size_t bytes = 0;
  };

  // Where the round's part of these chunks lies.
  std::vector<Stretch> stretches_of(const Operand& tensor) const {
    const plan::Extent range = layout_->extent(buffer(tensor).pack, tensor.chunks);
    const std::size_t element_bytes = size_of(buffer(tensor).element);
    std::vector<Stretch> stretches;
    std::size_t member_begin = 0;
    for (const PackMember& member : table(buffer(tensor).pack).members) {
      const std::size_t begin = std::max(range.offset, member_begin);
      const std::size_t end = std::min(range.offset + range.length, member_begin + member.elements);
      if (begin < end) {
        stretches.push_back(
            {layout_->locate(tensor, member, member_begin, begin), (end - begin) * element_bytes});
      }
      member_begin += member.elements;
    }
    return stretches;
  }

  void add_landings(BoundRound& round) {
    round.first_landing = static_cast<std::uint32_t>(program_->landings.size());
    for (std::size_t m = 0; m < lending_.of_message.size(); ++m) {
      if (layout_->mail().postings[m].way != Way::kIncoming) continue;
      if (program_->postings[number_of_message_[m]].num_stretches == 0) continue;
      const Lent& lent = lending_.of_message[m];
      const auto lane = static_cast<std::size_t>(lent.lane);
      const std::uint32_t steps = lent.after < 0 ? 0 : ends_[lane][static_cast<std::size_t>(lent.after)];
      program_->landings.push_back({number_of_message_[m], lane_numbers_[lane], steps, lent.after_sends});
    }
    round.num_landings = static_cast<std::uint32_t>(program_->landings.size()) - round.first_landing;
  }

  void add_greetings() {
    first_greeting_.reset();
    const std::optional<Greetings>& greetings = layout_->mail().greetings;
    if (!greetings) return;
    first_greeting_ = static_cast<std::uint32_t>(program_->postings.size());
    program_->postings.push_back(greetings->to_next);
    program_->postings.push_back(greetings->from_previous);
    program_->incoming.push_back(greetings->from_previous.place);
  }

  // Once in a round, before the first collective with other processes.
  void bind_greetings() {
    if (!first_greeting_) return;
    const std::uint32_t to_next = *std::exchange(first_greeting_, std::nullopt);
    BoundStep greet;
    greet.op = Op::kCopy;  // of nothing
    greet.first_send = static_cast<std::uint32_t>(program_->sends.size());
    greet.num_sends = 1;
    program_->sends.push_back(to_next);
    program_->steps.push_back(greet);
    BoundStep hear;
    hear.op = Op::kRecv;
    hear.posting = to_next + 1;
    program_->steps.push_back(hear);
  }

  void add_to_skeleton() {
    const std::vector<std::int64_t> bytes = layout_->bytes_of_messages();
    for (std::size_t m = 0; m < messages_.all.size(); ++m) {
      const plan::Channel& channel = plan_.channel(messages_.all[m].channel);
      skeleton_.add(static_cast<std::uint64_t>(plan_.rank_of(channel.from)) << 32 |
                    static_cast<std::uint32_t>(plan_.rank_of(channel.to)));
      skeleton_.add(static_cast<std::uint64_t>(bytes[m]));
      skeleton_.add(static_cast<std::uint64_t>(messages_.alike[m]));
      skeleton_.add(static_cast<std::uint64_t>(plan_.buffer(messages_.all[m].buffer).element));
    }
  }

  // Of each lane that runs here, how many of its first steps the round has, for every number of them.
  void number_lanes() {
    kept_.assign(plan_.lanes.size(), {});
    lane_numbers_.assign(plan_.lanes.size(), 0);
    ends_.assign(plan_.lanes.size(), {});
    std::uint32_t lanes = 0;
    for (std::size_t lane = 0; lane < plan_.lanes.size(); ++lane) {
      if (own_ && plan_.lanes[lane].rank != *own_) continue;
      ends_[lane].assign(plan_.lanes[lane].steps.size(), 0);
      std::uint32_t kept = 0;
      for (std::size_t s = 0; s < plan_.lanes[lane].steps.size(); ++s) {
        kept += is_kept(lane, s) ? 1 : 0;
        kept_[lane].push_back(kept);
      }
      if (kept > 0) lane_numbers_[lane] = lanes++;
    }
  }

  // Steps of packs that are not in the round are left out, and so are those that say nothing to a run: every
  // message has memory of its own, which is not given back before the round ends; and the rows that replicas
  // bring are in the packs' tables. Of a part that is cut around a call, the steps on its side are kept, and
  // the call by the first part after it.
  bool is_kept(std::size_t lane, std::size_t number) const {
    const Step& step = plan_.lanes[lane].steps[number];
    switch (step.op) {
      case Op::kRelease:
      case Op::kCounts:
        return false;
      case Op::kWait:
        return true;
      default: {
        const Part* const part = layout_->part(buffer(plan_.destinations(step).front()).pack);
        return part != nullptr && has_side(*part, messages_.stages.is_after[lane][number]) &&
               (step.op != Op::kCall || part->first == 0);
      }
    }
  }

  void bind_step(const Step& step, const Scene& scene) {
    BoundStep bound;
    bound.op = step.op;
    switch (step.op) {
      case Op::kCopy:
      case Op::kReduce:
        return bind_arithmetic(step, scene);
      case Op::kCall:
        bind_call(step, bound);
        break;
      case Op::kWait:  // as the plan has them, until all lanes are bound
        bound.wait_lane = static_cast<std::uint32_t>(step.lane);
        bound.wait_steps = static_cast<std::uint32_t>(step.step);
        break;
      case Op::kRecv:
        bound.posting = scene.posting_number(plan_.destinations(step).front());
        break;
      case Op::kNative:
        bind_native(step, scene, communicators_, *program_, bound);
        if (program_->natives[bound.native].spans_processes) bind_greetings();
        break;
      case Op::kRelease:
      case Op::kCounts:
        return;
    }
    program_->steps.push_back(bound);
  }

  void bind_call(const Step& step, BoundStep& bound) {
    const Operand& result = plan_.destinations(step).front();
    if (buffer(result).role != Role::kTemp || step.divisor != 1) {
      throw Error(ErrorCode::kInternal, "a call was bound whose result is divided or not a temporary");
    }
    bound.pack = static_cast<std::uint32_t>(buffer(result).pack);
    bound.device = step.device;
    bound.first_source = static_cast<std::uint32_t>(program_->pointers.size());
    const PackMember& member = table(buffer(result).pack).members.front();
    for (const Operand& source : plan_.sources(step)) {
      program_->pointers.push_back(layout_->locate(source, member, 0, 0));
    }
    bound.num_sources = step.num_sources;
    bound.result_slot = slots_.temporaries[static_cast<std::size_t>(result.buffer)];
  }

  void bind_arithmetic(const Step& step, const Scene& scene) {
    check_one_type(plan_.destinations(step));
    const Operand& first = plan_.sources(step).front();
    Work work{&step, units_.of(step.device)};
    for (const Operand& operand : plan_.sources(step)) work.sources.push_back({memory_of(operand, scene)});
    for (const Operand* operand : written(step, scene)) {
      if (operand != work.sources.front().operand) work.destinations.push_back({operand});
    }
    work.form.input = buffer(first).element;
    work.form.output = buffer(plan_.destinations(step).front()).element;
    work.form.accumulator = step.op == Op::kCopy ? work.form.input : step.accumulator;
    work.form.divisor = step.divisor;
    work.form.combine = step.combine;
    work.range = layout_->extent(buffer(first).pack, first.chunks);
    if (program_->queued.empty()) return bind_work(work, scene, tables_, *program_);
    const DividedWork parts = divided(std::move(work), scene);
    for (const Work& part : parts.works) bind_work(part, scene, tables_, *program_);
    if (parts.staging_bytes == 0) return;
    Memory& staging = memory(staging_);
    staging.is_staging = true;
    staging.bytes = std::max(staging.bytes, parts.staging_bytes);
  }

  // A message that was received into a tensor is read there.
  const Operand* memory_of(const Operand& operand, const Scene& scene) const {
    if (buffer(operand).role != Role::kView || scene.posting(operand).num_stretches == 0) return &operand;
    return lending_.of_message[static_cast<std::size_t>(layout_->message_of(operand))].tensor;
  }

  // The destinations, of messages with the same content in one place only one.
  std::vector<const Operand*> written(const Step& step, const Scene& scene) const {
    std::vector<const Operand*> operands;
    for (const Operand& operand : plan_.destinations(step)) {
      const bool is_message = buffer(operand).role == Role::kSlot;
      if (is_message && !scene.posting(operand).is_written) continue;
      operands.push_back(&operand);
    }
    return operands;
  }

  // Kernels store one type.
  void check_one_type(std::span<const Operand> destinations) const {
    const Element element = buffer(destinations.front()).element;
    if (std::ranges::all_of(destinations,
                            [&](const Operand& operand) { return buffer(operand).element == element; })) {
      return;
    }
    throw Error(ErrorCode::kInternal, "a step was bound that mixes types among its destinations");
  }

  const plan::Plan& plan_;
  std::span<const PackTable> tables_;
  engine::ThreadedEngine& host_;
  Units units_;
  std::vector<std::shared_ptr<engine::Communicator>> communicators_;  // by group
  OwnRank own_;
  Messages messages_;
  std::vector<Round> rounds_;
  SlotNumbers slots_;
  std::shared_ptr<Program> program_;
  std::vector<bool> is_call_result_;  // by buffer
  Hasher skeleton_;
  Lending lending_;  // empty: there is none

  // Of the round at hand.
  bool lends_ = false;  // something is sent from tensors
  const Layout* layout_ = nullptr;
  std::vector<std::uint32_t> number_of_message_;  // in Program::postings
  std::optional<std::uint32_t> first_greeting_;   // there, until it is bound
  std::vector<std::vector<std::uint32_t>> kept_;  // by lane of the plan and step
  std::vector<std::uint32_t> lane_numbers_;       // by lane of the plan, in the round
  std::vector<std::vector<std::uint32_t>> ends_;  // by lane of the plan and step: how many are bound up to it
  std::uint32_t staging_ = 0;                     // slot of the lane at hand, in the first round
};

}  // namespace

std::shared_ptr<const Program> bind(const plan::Plan& plan, std::span<const plan::PackTable> tables,
                                    std::size_t tensor_slots, const Site& site) {
  return Binder(plan, tables, tensor_slots, site).bind();
}

}  // namespace onesum::exec
