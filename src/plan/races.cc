#include "plan/races.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "plan/locations.h"
#include "plan/ranks.h"
#include "plan/refuse.h"
#include "plan/text.h"

namespace onesum::plan {

namespace {

// Everything that steps touch, numbered: chunks of buffers; of each channel its sending and its receiving
// end; of each rank the counts of packs, and the order in which it comes to them and to native collectives.
// Each belongs to one rank.
class Things {
 public:
  enum class Kind : std::uint8_t { kChunk, kSending, kReceiving, kCounts, kOrderOfCounts, kOrderOfNative };

  // How a step touches one of them.
  struct Touch {
    Kind kind = Kind::kChunk;
    bool writes = false;
    std::size_t thing = 0;
    std::int32_t number = 0;  // of the buffer, the channel, the pack or the rank
    std::uint32_t chunk = 0;
  };

  explicit Things(const Plan& plan)
      : plan_(plan),
        locations_(plan),
        ranks_(plan),
        sending_(locations_.size()),
        receiving_(sending_ + plan.channels.size()),
        counts_(receiving_ + plan.channels.size()),
        number_by_counts_(plan.packs.size(), -1) {
    for (std::size_t i = 0; i < plan.packs.size(); ++i) {
      if (is_by_counts(plan.packs[i].split)) number_by_counts_[i] = by_counts_++;
    }
    orders_ = counts_ + ranks_.size() * static_cast<std::size_t>(by_counts_);
  }

  std::size_t size() const { return orders_ + 2 * ranks_.size(); }
  std::size_t rank_of(std::int32_t lane) const { return ranks_.of_lane(lane); }

  template <class F>
  void for_each_touch(std::int32_t lane, const Step& step, F&& f) const {
    switch (step.op) {
      case Op::kWait:
        return;
      case Op::kCounts:
        f(Touch{Kind::kOrderOfCounts, true, orders_ + rank_of(lane), plan_.lane(lane).rank, 0});
        return f(counts_of(lane, step.pack, true));
      case Op::kRecv:
        read_counts(lane, plan_.destinations(step).front(), f);
        return f(end_of(Kind::kReceiving, step.channel, true));
      case Op::kRelease:
        return f(end_of(Kind::kReceiving, step.channel, true));
      case Op::kNative:
        f(Touch{Kind::kOrderOfNative, true, orders_ + ranks_.size() + rank_of(lane), plan_.lane(lane).rank,
                0});
        break;
      default:
        break;
    }
    read_counts(lane, plan_.operands[step.first_operand], f);
    for (const Operand& source : plan_.sources(step)) touch(source, false, f);
    for (const Operand& destination : plan_.destinations(step)) touch(destination, true, f);
  }

 private:
  Touch end_of(Kind kind, std::int32_t channel, bool writes) const {
    const std::size_t first = kind == Kind::kSending ? sending_ : receiving_;
    return {kind, writes, first + static_cast<std::size_t>(channel), channel, 0};
  }

  Touch counts_of(std::int32_t lane, std::int32_t pack, bool writes) const {
    const auto number = static_cast<std::size_t>(number_by_counts_[static_cast<std::size_t>(pack)]);
    const std::size_t thing = counts_ + rank_of(lane) * static_cast<std::size_t>(by_counts_) + number;
    return {Kind::kCounts, writes, thing, pack, 0};
  }

  template <class F>
  void read_counts(std::int32_t lane, const Operand& operand, F&& f) const {
    if (by_counts_ == 0) return;
    const std::int32_t pack = plan_.buffer(operand.buffer).pack;
    if (number_by_counts_[static_cast<std::size_t>(pack)] >= 0) f(counts_of(lane, pack, false));
  }

  template <class F>
  void touch(const Operand& operand, bool writes, F&& f) const {
    const Buffer& buffer = plan_.buffer(operand.buffer);
    if (buffer.role == Role::kSlot) return f(end_of(Kind::kSending, buffer.index, writes));
    if (buffer.role == Role::kView) return f(end_of(Kind::kReceiving, buffer.index, writes));
    const std::size_t first = locations_.at(operand.buffer, operand.chunks.first);
    for (std::uint32_t i = 0; i < operand.chunks.count; ++i) {
      f(Touch{Kind::kChunk, writes, first + i, operand.buffer, operand.chunks.first + i});
    }
  }

  const Plan& plan_;
  Locations locations_;
  Ranks ranks_;
  std::size_t sending_;  // where each kind begins
  std::size_t receiving_;
  std::size_t counts_;
  std::size_t orders_ = 0;                      // of counts, then of native collectives
  std::vector<std::int32_t> number_by_counts_;  // of each pack, among those that are split so; -1: it is not
  std::int32_t by_counts_ = 0;
};

// Which things several lanes touch. What one lane touches alone is touched in its order.
class Shared {
 public:
  Shared(const Plan& plan, const Things& things) : users_(things.size(), kNobody) {
    for (std::int32_t lane = 0; lane < static_cast<std::int32_t>(plan.lanes.size()); ++lane) {
      for (const Step& step : plan.lane(lane).steps) {
        things.for_each_touch(lane, step, [&](const Things::Touch& touch) { use(lane, touch.thing); });
      }
    }
  }

  std::size_t size() const { return size_; }
  // Its number among the shared ones; negative: it is not.
  std::int32_t number_of(std::size_t thing) const { return -(users_[thing] - kShared); }

 private:
  static constexpr std::int32_t kNobody = -1;
  static constexpr std::int32_t kShared = -2;  // the first one; -3: the second, and so on

  void use(std::int32_t lane, std::size_t thing) {
    std::int32_t& user = users_[thing];
    if (user == kNobody) user = lane;
    if (user < 0 || user == lane) return;
    user = kShared - static_cast<std::int32_t>(size_++);
  }

  std::vector<std::int32_t> users_;  // by thing: the one lane that touches it, or else
  std::size_t size_ = 0;
};

// Of some lanes, how many of their steps are known to be done.
using Clock = std::vector<std::int32_t>;

// Who touched a thing: its last writer, and of each lane the last reader since. Nearly always one lane reads;
// further ones are in a list of their own, whose number this is.
struct Accesses {
  StepRef writer;
  StepRef reader;
  std::int32_t more_readers = -1;
};

// What a lane knows of others: of those of its own rank only, by waits and messages inside the rank; or of
// all lanes. The first takes no time, the second takes lanes^2 numbers; what the first finds ordered is
// ordered.
enum class Knowledge : std::uint8_t { kOwnRank, kEverything };

// Vector clocks, as in Flanagan and Freund, FastTrack (2009): a thing remembers accesses as (lane, step), and
// an access is ordered after a remembered one if the clock of its lane has reached it.
class RaceCheck {
 public:
  RaceCheck(const Plan& plan, const Things& things, const Shared& shared, Knowledge knowledge)
      : plan_(plan),
        things_(things),
        shared_(shared),
        knowledge_(knowledge),
        accesses_(shared.size()),
        messages_(plan.channels.size()),
        awaited_(plan.lanes.size()) {
    make_clocks();
    for (const Lane& lane : plan.lanes) {
      for (const Step& step : lane.steps) {
        if (step.op == Op::kWait) awaited_[static_cast<std::size_t>(step.lane)].steps.push_back(step.step);
      }
    }
    for (Awaited& awaited : awaited_) awaited.prepare();
  }

  // The fault that was found, in words; empty: none.
  std::string run(const Schedule& schedule) {
    for (const StepRef& ref : schedule) {
      visit(ref);
      if (!fault_.empty()) break;
    }
    return std::move(fault_);
  }

 private:
  // Steps of a lane that others wait for, and what was known when they were done.
  struct Awaited {
    std::vector<std::int32_t> steps;  // ascending
    std::vector<Clock> clocks;
    std::size_t next = 0;

    void prepare() {
      std::ranges::sort(steps);
      steps.erase(std::unique(steps.begin(), steps.end()), steps.end());
      clocks.resize(steps.size());
    }
    void pass(std::int32_t step, const Clock& clock) {
      if (next < steps.size() && steps[next] == step) clocks[next++] = clock;
    }
    const Clock& at(std::int32_t step) const {
      return clocks[static_cast<std::size_t>(std::ranges::lower_bound(steps, step) - steps.begin())];
    }
  };

  void make_clocks() {
    const std::size_t lanes = plan_.lanes.size();
    const auto scope_of = [&](std::size_t lane) -> std::size_t {
      return knowledge_ == Knowledge::kOwnRank ? things_.rank_of(static_cast<std::int32_t>(lane)) : 0;
    };
    std::vector<std::size_t> in_scope;
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      const std::size_t scope = scope_of(lane);
      if (scope >= in_scope.size()) in_scope.resize(scope + 1, 0);
      place_.push_back(in_scope[scope]++);
    }
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      clocks_.emplace_back(in_scope[scope_of(lane)], 0);
    }
  }

  void visit(StepRef ref) {
    const Step& step = step_at(ref);
    Clock& clock = clocks_[static_cast<std::size_t>(ref.lane)];
    clock[place_[static_cast<std::size_t>(ref.lane)]] = ref.step + 1;
    if (step.op == Op::kWait) join(clock, awaited_[static_cast<std::size_t>(step.lane)].at(step.step));
    things_.for_each_touch(ref.lane, step, [&](const Things::Touch& touch) {
      const std::int32_t number = shared_.number_of(touch.thing);
      if (number < 0 || !fault_.empty()) return;
      if (touch.writes) {
        write(ref, touch, accesses_[static_cast<std::size_t>(number)]);
      } else {
        read(ref, touch, accesses_[static_cast<std::size_t>(number)]);
      }
    });
    // Which message a receive gets is decided before it has it: what the sender knew is learnt afterwards.
    if (step.op == Op::kRecv && carries_knowledge(step.channel)) {
      join(clock, messages_[static_cast<std::size_t>(step.channel)]);
    }
    if (is_work(step.op)) send(step, clock);
    awaited_[static_cast<std::size_t>(ref.lane)].pass(ref.step, clock);
  }

  void send(const Step& step, const Clock& clock) {
    for (const Operand& destination : plan_.destinations(step)) {
      const Buffer& buffer = plan_.buffer(destination.buffer);
      if (buffer.role != Role::kSlot || !carries_knowledge(buffer.index)) continue;
      messages_[static_cast<std::size_t>(buffer.index)] = clock;
    }
  }

  bool carries_knowledge(std::int32_t channel) const {
    return knowledge_ == Knowledge::kEverything ||
           plan_.rank_of(plan_.channel(channel).from) == plan_.rank_of(plan_.channel(channel).to);
  }

  static void join(Clock& clock, const Clock& other) {
    for (std::size_t i = 0; i < clock.size(); ++i) clock[i] = std::max(clock[i], other[i]);
  }

  bool is_ordered(StepRef before, StepRef now) const {
    return before.lane < 0 ||
           clocks_[static_cast<std::size_t>(now.lane)][place_[static_cast<std::size_t>(before.lane)]] >
               before.step;
  }

  void read(StepRef ref, const Things::Touch& touch, Accesses& accesses) {
    if (!is_ordered(accesses.writer, ref)) return fail(ref, touch, accesses.writer, true);
    if (accesses.reader.lane < 0 || accesses.reader.lane == ref.lane) {
      accesses.reader = ref;
      return;
    }
    if (accesses.more_readers < 0) {
      accesses.more_readers = static_cast<std::int32_t>(more_readers_.size());
      more_readers_.emplace_back();
    }
    std::vector<StepRef>& readers = more_readers_[static_cast<std::size_t>(accesses.more_readers)];
    const auto same_lane = std::ranges::find(readers, ref.lane, &StepRef::lane);
    if (same_lane == readers.end()) {
      readers.push_back(ref);
    } else {
      *same_lane = ref;
    }
  }

  void write(StepRef ref, const Things::Touch& touch, Accesses& accesses) {
    if (!is_ordered(accesses.writer, ref)) return fail(ref, touch, accesses.writer, true);
    if (!is_ordered(accesses.reader, ref)) return fail(ref, touch, accesses.reader, false);
    if (accesses.more_readers >= 0) {
      for (const StepRef& reader : more_readers_[static_cast<std::size_t>(accesses.more_readers)]) {
        if (!is_ordered(reader, ref)) return fail(ref, touch, reader, false);
      }
    }
    accesses = {ref, {}, -1};
  }

  const Step& step_at(StepRef ref) const {
    return plan_.lane(ref.lane).steps[static_cast<std::size_t>(ref.step)];
  }

  const char* verb(StepRef ref, bool writes) const {
    const Op op = step_at(ref).op;
    if (op == Op::kRecv) return writes ? "receives" : "needs";
    if (op == Op::kRelease) return "releases";
    if (op == Op::kCounts) return "brings";
    return writes ? "writes" : "reads";
  }

  static std::string name_of(const Things::Touch& touch) {
    switch (touch.kind) {
      case Things::Kind::kChunk:
        return fmt::format("b{} chunk {}", touch.number, touch.chunk);
      case Things::Kind::kCounts:
        return fmt::format("the counts of pack {}", touch.number);
      default:
        return fmt::format("the view of channel {}", touch.number);
    }
  }

  // What two writers of an end of a channel, or of a rank's order of counts or natives, both do.
  static std::string both_do(const Things::Touch& touch) {
    if (touch.kind == Things::Kind::kSending) return fmt::format("send on channel {}", touch.number);
    if (touch.kind == Things::Kind::kReceiving)
      return fmt::format("receive or release on channel {}", touch.number);
    if (touch.kind == Things::Kind::kOrderOfNative)
      return fmt::format("are native collectives of rank {}", touch.number);
    return fmt::format("bring counts to rank {}", touch.number);
  }

  void fail(StepRef ref, const Things::Touch& touch, StepRef other, bool other_writes) {
    const bool is_order = touch.kind != Things::Kind::kChunk && touch.kind != Things::Kind::kCounts;
    if (is_order && touch.writes && other_writes) {
      fault_ = fmt::format("{} and {} both {}, and nothing orders them", describe(plan_, other),
                           describe(plan_, ref), both_do(touch));
    } else {
      fault_ = fmt::format("{} {} {}, which {} {}, and nothing orders them", describe(plan_, ref),
                           verb(ref, touch.writes), name_of(touch), describe(plan_, other),
                           verb(other, other_writes));
    }
  }

  const Plan& plan_;
  const Things& things_;
  const Shared& shared_;
  Knowledge knowledge_;
  std::vector<Accesses> accesses_;  // by number among the shared things
  std::vector<std::vector<StepRef>> more_readers_;
  std::vector<Clock> messages_;     // by channel: what the sender of the message in its slot knew
  std::vector<Clock> clocks_;       // by lane
  std::vector<std::size_t> place_;  // by lane: its place in clocks
  std::vector<Awaited> awaited_;    // by lane
  std::string fault_;
};

// Numbers in all clocks of a check with Knowledge::kEverything.
constexpr std::size_t kMostKnown = std::size_t{1} << 27;

}  // namespace

void check_races(const Plan& plan, const Schedule& schedule) {
  const Things things(plan);
  const Shared shared(plan, things);
  if (shared.size() == 0) return;
  std::string fault = RaceCheck(plan, things, shared, Knowledge::kOwnRank).run(schedule);
  if (fault.empty()) return;
  if (plan.lanes.size() * (plan.lanes.size() + plan.channels.size()) > kMostKnown) {
    refuse(fault + " (inside their rank; the plan is too large to look for an order through other ranks)");
  }
  fault = RaceCheck(plan, things, shared, Knowledge::kEverything).run(schedule);
  if (!fault.empty()) refuse(fault);
}

}  // namespace onesum::plan
