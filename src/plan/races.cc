#include "plan/races.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>

#include <fmt/format.h>

#include "plan/locations.h"
#include "plan/refuse.h"
#include "plan/text.h"

namespace onesum::plan {

namespace {

// Of each lane, how many of its steps are known to be done.
using Clock = std::vector<std::int32_t>;

void join(Clock& clock, const Clock& other) {
  for (std::size_t i = 0; i < clock.size(); ++i) clock[i] = std::max(clock[i], other[i]);
}

// Who touched a location: its last writer, and of each lane the last reader since. Nearly always one lane
// reads; further ones are in a list of their own, whose number this is.
struct Accesses {
  StepRef writer;
  StepRef reader;
  std::int32_t more_readers = -1;
};

// Vector clocks, as in Flanagan and Freund, FastTrack (2009): a location remembers accesses as (lane, step),
// and an access is ordered after a remembered one if the clock of its lane has reached it.
class RaceCheck {
 public:
  explicit RaceCheck(const Plan& plan)
      : plan_(plan),
        locations_(plan),
        accesses_(locations_.size()),
        sending_(plan.channels.size()),
        receiving_(plan.channels.size()),
        messages_(plan.channels.size()),
        views_(plan.channels.size()),
        clocks_(plan.lanes.size(), Clock(plan.lanes.size(), 0)) {
    for (const Lane& lane : plan.lanes) {
      for (const Step& step : lane.steps) {
        if (step.op == Op::kWait) awaited_.emplace(std::tuple(step.lane, step.step), Clock());
      }
    }
  }

  void visit(StepRef ref) {
    const Step& step = plan_.lane(ref.lane).steps[static_cast<std::size_t>(ref.step)];
    Clock& clock = clocks_[static_cast<std::size_t>(ref.lane)];
    clock[static_cast<std::size_t>(ref.lane)] = ref.step + 1;
    switch (step.op) {
      case Op::kWait:
        join(clock, awaited_.at({step.lane, step.step}));
        break;
      case Op::kRecv:
        receive(ref, step, clock);
        break;
      case Op::kRelease:
        release(ref, step);
        break;
      default:
        for (const Operand& source : plan_.sources(step)) read(ref, source);
        for (const Operand& destination : plan_.destinations(step)) write_or_send(ref, destination, clock);
    }
    const auto awaited = awaited_.find({ref.lane, ref.step});
    if (awaited != awaited_.end()) awaited->second = clock;
  }

 private:
  bool is_ordered(StepRef before, StepRef now) const {
    return before.lane < 0 ||
           clocks_[static_cast<std::size_t>(now.lane)][static_cast<std::size_t>(before.lane)] > before.step;
  }

  static const char* verb(const Step& step) {
    if (step.op == Op::kRecv) return "receives";
    return step.op == Op::kRelease ? "releases" : "writes";
  }

  [[noreturn]] void fail(StepRef ref, const std::string& does, StepRef other, const char* other_does) const {
    refuse(fmt::format("{} {}, which {} {}, and nothing orders them", describe(plan_, ref), does,
                       describe(plan_, other), other_does));
  }

  const Step& step_at(StepRef ref) const {
    return plan_.lane(ref.lane).steps[static_cast<std::size_t>(ref.step)];
  }

  void read(StepRef ref, const Operand& source) {
    for (std::uint32_t i = 0; i < source.chunks.count; ++i) {
      const std::uint32_t chunk = source.chunks.first + i;
      Accesses& accesses = accesses_[locations_.at(source.buffer, chunk)];
      if (!is_ordered(accesses.writer, ref)) {
        fail(ref, fmt::format("reads b{} chunk {}", source.buffer, chunk), accesses.writer,
             verb(step_at(accesses.writer)));
      }
      remember_reader(accesses, ref);
    }
  }

  void remember_reader(Accesses& accesses, StepRef ref) {
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

  void write(StepRef ref, std::int32_t buffer, std::uint32_t chunk) {
    Accesses& accesses = accesses_[locations_.at(buffer, chunk)];
    const auto does = [&] { return fmt::format("{} b{} chunk {}", verb(step_at(ref)), buffer, chunk); };
    if (!is_ordered(accesses.writer, ref)) {
      fail(ref, does(), accesses.writer, verb(step_at(accesses.writer)));
    }
    if (!is_ordered(accesses.reader, ref)) fail(ref, does(), accesses.reader, "reads");
    if (accesses.more_readers >= 0) {
      for (const StepRef& reader : more_readers_[static_cast<std::size_t>(accesses.more_readers)]) {
        if (!is_ordered(reader, ref)) fail(ref, does(), reader, "reads");
      }
    }
    accesses = {ref, {}, -1};
  }

  // One end of a channel is used in one order.
  void use_end(StepRef& last, StepRef ref, const char* does, std::int32_t channel) const {
    if (!is_ordered(last, ref)) {
      refuse(fmt::format("{} and {} both {} channel {}, and nothing orders them", describe(plan_, last),
                         describe(plan_, ref), does, channel));
    }
    last = ref;
  }

  void write_or_send(StepRef ref, const Operand& destination, const Clock& clock) {
    const Buffer& buffer = plan_.buffer(destination.buffer);
    if (buffer.role == Role::kSlot) {
      const auto channel = static_cast<std::size_t>(buffer.index);
      use_end(sending_[channel], ref, "send on", buffer.index);
      messages_[channel] = clock;
      return;
    }
    for (std::uint32_t i = 0; i < destination.chunks.count; ++i) {
      write(ref, destination.buffer, destination.chunks.first + i);
    }
  }

  void receive(StepRef ref, const Step& step, Clock& clock) {
    const auto channel = static_cast<std::size_t>(step.channel);
    use_end(receiving_[channel], ref, "receive or release on", step.channel);
    join(clock, messages_[channel]);
    views_[channel] = plan_.destinations(step).front();
    write_view(ref, views_[channel]);
  }

  void release(StepRef ref, const Step& step) {
    const auto channel = static_cast<std::size_t>(step.channel);
    write_view(ref, views_[channel]);
    use_end(receiving_[channel], ref, "receive or release on", step.channel);
  }

  void write_view(StepRef ref, const Operand& view) {
    for (std::uint32_t i = 0; i < view.chunks.count; ++i) write(ref, view.buffer, view.chunks.first + i);
  }

  const Plan& plan_;
  Locations locations_;
  std::vector<Accesses> accesses_;  // by location
  std::vector<std::vector<StepRef>> more_readers_;
  std::vector<StepRef> sending_;    // by channel: the last to send
  std::vector<StepRef> receiving_;  // by channel: the last to receive or release
  std::vector<Clock> messages_;     // by channel: what the sender of the message in its slot knew
  std::vector<Operand> views_;      // by channel: what was received last
  std::vector<Clock> clocks_;       // by lane
  std::map<std::tuple<std::int32_t, std::int32_t>, Clock> awaited_;  // what steps that others wait for knew
};

}  // namespace

void check_races(const Plan& plan, const Schedule& schedule) {
  RaceCheck check(plan);
  for (const StepRef& ref : schedule) check.visit(ref);
}

}  // namespace onesum::plan
