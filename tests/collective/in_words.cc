#include "collective/in_words.h"

#include <deque>
#include <map>
#include <utility>

#include <fmt/format.h>

namespace onesum::collective {
namespace {

using plan::Op;
using plan::Operand;
using plan::Plan;
using plan::Role;
using plan::Step;

class InWords {
 public:
  explicit InWords(const Plan& plan) : plan_(plan), done_(plan.lanes.size(), 0) {
    for (std::size_t b = 0; b < plan.buffers.size(); ++b) {
      const plan::Buffer& buffer = plan.buffers[b];
      if (buffer.role != Role::kInput && buffer.role != Role::kInOut) continue;
      for (std::uint32_t i = 0; i < buffer.window.count; ++i) {
        words_[{static_cast<std::int32_t>(b), buffer.window.first + i}] = fmt::format("r{}", buffer.index);
      }
    }
  }

  bool run() {
    bool goes_on = true;
    while (goes_on) {
      goes_on = false;
      for (std::size_t lane = 0; lane < plan_.lanes.size(); ++lane) {
        while (done_[lane] < plan_.lanes[lane].steps.size() &&
               perform(plan_.lanes[lane].steps[done_[lane]])) {
          ++done_[lane];
          goes_on = true;
        }
      }
    }
    for (std::size_t lane = 0; lane < plan_.lanes.size(); ++lane) {
      if (done_[lane] < plan_.lanes[lane].steps.size()) return false;
    }
    return true;
  }

  std::vector<std::vector<std::string>> results() const {
    const plan::Pack& pack = plan_.packs.front();
    std::vector<std::vector<std::string>> results(pack.destinations.size());
    for (std::size_t b = 0; b < plan_.buffers.size(); ++b) {
      const plan::Buffer& buffer = plan_.buffers[b];
      if (buffer.role != Role::kOutput && buffer.role != Role::kInOut) continue;
      for (std::size_t d = 0; d < results.size(); ++d) {
        if (pack.destinations[d] != buffer.device) continue;
        for (std::uint32_t chunk = 0; chunk < plan::num_chunks(pack.split); ++chunk) {
          const auto found = words_.find({static_cast<std::int32_t>(b), chunk});
          results[d].push_back(found == words_.end() ? "nothing" : found->second);
        }
      }
    }
    return results;
  }

 private:
  bool perform(const Step& step) {
    if (step.op == Op::kWait) {
      return done_[static_cast<std::size_t>(step.lane)] > static_cast<std::size_t>(step.step);
    }
    if (step.op == Op::kRecv) {
      std::deque<std::vector<std::string>>& messages = messages_[step.channel];
      if (messages.empty()) return false;
      const Operand& view = plan_.destinations(step).front();
      for (std::uint32_t i = 0; i < view.chunks.count; ++i) {
        words_[{view.buffer, view.chunks.first + i}] = messages.front()[i];
      }
      messages.pop_front();
    } else if (step.op == Op::kCopy || step.op == Op::kReduce) {
      compute(step);
    }
    return true;
  }

  std::string sum(const Step& step, std::uint32_t i) const {
    std::vector<std::string> stack;
    for (const Operand& source : plan_.sources(step)) {
      stack.push_back(words_.at({source.buffer, source.chunks.first + i}));
      for (int merge = 0; merge < source.merges; ++merge) {
        const std::string right = std::move(stack.back());
        stack.pop_back();
        stack.back() = fmt::format("({}+{})", stack.back(), right);
      }
    }
    return stack.back();
  }

  void compute(const Step& step) {
    std::map<std::int32_t, std::vector<std::string>> sent;  // by channel
    std::map<std::pair<std::int32_t, std::uint32_t>, std::string> written;
    for (std::uint32_t i = 0; i < plan_.sources(step).front().chunks.count; ++i) {
      const std::string value = sum(step, i);
      for (const Operand& destination : plan_.destinations(step)) {
        const plan::Buffer& buffer = plan_.buffer(destination.buffer);
        std::string stored = step.divisor == 1 ? value : fmt::format("{}/{}", value, step.divisor);
        if (step.op == Op::kReduce && buffer.element != step.accumulator) {
          stored = fmt::format("{}({})", to_string(buffer.element), stored);
        }
        if (buffer.role == Role::kSlot) {
          sent[buffer.index].push_back(stored);
        } else {
          written[{destination.buffer, destination.chunks.first + i}] = stored;
        }
      }
    }
    for (auto& [channel, message] : sent) messages_[channel].push_back(std::move(message));
    for (auto& [place, value] : written) words_[place] = std::move(value);
  }

  const Plan& plan_;
  std::vector<std::size_t> done_;
  std::map<std::pair<std::int32_t, std::uint32_t>, std::string> words_;  // by buffer and chunk
  std::map<std::int32_t, std::deque<std::vector<std::string>>> messages_;
};

class StepLines {
 public:
  explicit StepLines(const Plan& plan) : plan_(plan) {}

  std::string line(const Step& step) {
    std::string text = fmt::format("op {} in {} on {} by {}", static_cast<int>(step.op),
                                   to_string(step.accumulator), step.device, step.divisor);
    if (step.channel >= 0) text.append(" on ").append(name(plan_.channel(step.channel)));
    for (const Operand& operand : plan_.destinations(step)) text.append(" ").append(name(operand));
    text.append(" =");
    for (const Operand& operand : plan_.sources(step)) text.append(" ").append(name(operand));
    return text;
  }

 private:
  static std::string name(const plan::Channel& channel) {
    return fmt::format("{}->{}#{}", channel.from, channel.to, channel.number);
  }

  std::string name(const Operand& operand) {
    const plan::Buffer& buffer = plan_.buffer(operand.buffer);
    std::string index = std::to_string(buffer.index);
    if (buffer.role == Role::kSlot || buffer.role == Role::kView) index = name(plan_.channel(buffer.index));
    if (buffer.role == Role::kTemp) {
      index = std::to_string(temporaries_.try_emplace(buffer.index, temporaries_.size()).first->second);
    }
    return fmt::format("{}:{} on {} {} [{}+{}] of [{}+{}] merges {}", static_cast<int>(buffer.role), index,
                       buffer.device, to_string(buffer.element), operand.chunks.first, operand.chunks.count,
                       buffer.window.first, buffer.window.count, operand.merges);
  }

  const Plan& plan_;
  std::map<std::int32_t, std::size_t> temporaries_;
};

}  // namespace

std::vector<std::vector<std::string>> results_in_words(const Plan& plan) {
  InWords words(plan);
  if (!words.run()) return {};
  return words.results();
}

std::vector<std::string> steps_of_rank(const Plan& plan, std::int32_t rank) {
  std::vector<std::string> lines;
  StepLines names(plan);
  for (const plan::Lane& lane : plan.lanes) {
    if (lane.rank != rank) continue;
    lines.emplace_back("lane");
    for (const Step& step : lane.steps) lines.push_back(names.line(step));
  }
  return lines;
}

}  // namespace onesum::collective
