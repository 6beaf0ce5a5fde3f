#include "cli/plan_command.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <onesum/error.h>

#include "base/amounts.h"
#include "cli/json_object.h"
#include "cli/output.h"
#include "cli/plan_subject.h"
#include "cli/table.h"
#include "plan/cost.h"
#include "plan/crossing.h"
#include "plan/draw.h"
#include "plan/lower_bound.h"
#include "plan/text.h"
#include "plan/verify.h"

namespace onesum::cli {
namespace {

constexpr const char* kProved =
    "verified: no race, no deadlock, every result holds every replica exactly once, in this order";

constexpr std::size_t kMostListedDevices = 64;

// What is known of a plan. A plan from a file may be wrong: then the proof is missing, and the message says
// why.
struct Findings {
  std::optional<plan::Proof> proof;
  std::optional<plan::Cost> cost;
  std::optional<plan::LowerBound> bound;
  std::string fault;
  plan::CostConstants constants;
};

Findings look_at(const PlanSubject& subject, const plan::CostConstants& constants, bool must_be_right) {
  Findings findings;
  findings.constants = constants;
  try {
    findings.proof = plan::verify(subject.plan);
    findings.cost = plan::cost(subject.plan, subject.sizes, constants);
    findings.bound = plan::lower_bound(subject.plan, subject.sizes, constants);
  } catch (const Error& error) {
    if (must_be_right) throw;
    findings.fault = error.what();
  }
  return findings;
}

// Every line as a remark of a plan's text.
std::string remarks(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    result += fmt::format("# {}\n", text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return result;
}

std::string device_table(const PlanSubject& subject, const plan::Cost& cost) {
  std::vector<std::vector<std::string>> rows;
  for (std::size_t d = 0; d < cost.devices.size(); ++d) {
    const plan::DeviceCost& device = cost.devices[d];
    rows.push_back({std::to_string(d), subject.device_names[d], std::to_string(device.bytes_read),
                    std::to_string(device.bytes_written), std::to_string(device.bytes_sent),
                    std::to_string(device.bytes_received), std::to_string(device.additions)});
  }
  return table_of({{"device"},
                   {"name", 0, true},
                   {"bytes read"},
                   {"bytes written"},
                   {"bytes sent"},
                   {"bytes received"},
                   {"additions"}},
                  rows);
}

// The same in two lines where there are many.
std::string device_summary(const plan::Cost& cost) {
  const auto range = [&](std::uint64_t plan::DeviceCost::* field) {
    const auto [least, most] = std::ranges::minmax(cost.devices, {}, field);
    return least.*field == most.*field ? fmt::format("{} bytes", most.*field)
                                       : fmt::format("{} to {} bytes", least.*field, most.*field);
  };
  return fmt::format("each of {} devices sends {} and receives {},\n  reads {} and writes {}\n",
                     cost.devices.size(), range(&plan::DeviceCost::bytes_sent),
                     range(&plan::DeviceCost::bytes_received), range(&plan::DeviceCost::bytes_read),
                     range(&plan::DeviceCost::bytes_written));
}

std::string order_text(const PlanSubject& subject, const Findings& findings) {
  std::string text = fmt::format("order of additions: {}\n", subject.plan.order);
  if (!findings.proof) return text + fmt::format("not right: {}\n", findings.fault);
  const auto expression_of = [&](std::size_t p) { return findings.proof->packs[p].expression; };
  for (const auto& [expression, packs] : grouped(findings.proof->packs.size(), expression_of)) {
    text += fmt::format("{} = {}\n", numbered("pack", packs), expression);
  }
  return text;
}

struct MachineTraffic {
  plan::LinkCost all;
  std::uint64_t most_sent = 0;  // bytes, by one machine
};

MachineTraffic traffic_between_machines(const PlanSubject& subject) {
  MachineTraffic traffic;
  for (const plan::LinkCost& sent :
       plan::sent_between_machines(subject.plan, subject.sizes, subject.machines)) {
    traffic.all.messages += sent.messages;
    traffic.all.bytes += sent.bytes;
    traffic.most_sent = std::max(traffic.most_sent, sent.bytes);
  }
  return traffic;
}

// "4 messages, 2 MiB".
std::string level_text(const plan::LinkCost& level) {
  if (level.messages == 0) return "no message";
  return fmt::format("{} {}, {}", level.messages, level.messages == 1 ? "message" : "messages",
                     format_bytes(level.bytes));
}

std::string steps_text(const plan::Cost& cost) {
  return fmt::format("steps: {}, the longest chain {}; messages: {}\n", cost.steps, cost.longest_chain,
                     cost.messages);
}

std::string levels_text(const plan::Cost& cost) {
  std::string native;
  if (cost.native.steps > 0) {
    native = fmt::format("native collectives: {} {}, {} between devices at least\n", cost.native.steps,
                         cost.native.steps == 1 ? "step" : "steps", format_bytes(cost.native.bytes));
  }
  return native + fmt::format("across workers: {}; between devices of a worker: {}\n",
                              level_text(cost.across), level_text(cost.inside));
}

// "between machines: 4 messages, 2 MiB, of which one sends 1 MiB at most".
std::string machines_text(const PlanSubject& subject) {
  if (subject.machines.empty()) return "";
  const MachineTraffic traffic = traffic_between_machines(subject);
  std::string text = "between machines: " + level_text(traffic.all);
  if (traffic.all.messages > 0)
    text += fmt::format(", of which one sends {} at most", format_bytes(traffic.most_sent));
  return text + "\n";
}

std::string time_text(const plan::Cost& cost, const std::optional<plan::LowerBound>& bound,
                      const plan::CostConstants& constants) {
  std::string text = fmt::format("predicted time: {}\n", format_time(cost.seconds));
  if (bound) {
    text += fmt::format("lower bound: {} ({})", format_time(bound->seconds), bound->reason);
    if (bound->seconds > 0)
      text += fmt::format("; the plan takes {} times as long", format_number(cost.seconds / bound->seconds));
    text += "\n";
  }
  return text + fmt::format("  ({})\n", to_text(constants));
}

// "packs 0 to 114: 64 to 16384 elements in 1 chunk", a line for each way of cutting them.
std::string packs_text(const PlanSubject& subject) {
  const auto chunks_of = [&](std::size_t p) -> std::string {
    std::vector<std::string> levels;
    for (const plan::SplitLevel& level : subject.plan.packs[p].split)
      levels.push_back(std::to_string(level.parts));
    return levels.empty() ? "1 chunk" : fmt::format("{} chunks", fmt::join(levels, " x "));
  };
  std::string text;
  for (const auto& [chunks, packs] : grouped(subject.plan.packs.size(), chunks_of)) {
    text += numbered("pack", packs) + ": ";
    if (subject.has_sizes) {
      const auto length = [&](std::size_t p) { return subject.sizes.pack_lengths[p]; };
      const auto [least, largest] = std::ranges::minmax(packs, {}, length);
      text += fmt::format("{} elements in ", format_range(length(least), length(largest)));
    }
    text += chunks + "\n";
  }
  return text;
}

std::string cost_text(const PlanSubject& subject, const Findings& findings) {
  const plan::Cost& cost = *findings.cost;
  std::string text = packs_text(subject) + steps_text(cost);
  if (!subject.has_sizes) return text + "bytes and time: unknown without --bytes\n";
  text += cost.devices.size() <= kMostListedDevices ? device_table(subject, cost) : device_summary(cost);
  return text + levels_text(cost) + machines_text(subject) +
         time_text(cost, findings.bound, findings.constants);
}

void print_words(const PlanSubject& subject, bool say_verified) {
  print(fmt::format("{}\n{}{}", subject.title, subject.explanation,
                    say_verified ? fmt::format("{}\n", kProved) : ""));
}

void print_text(const PlanSubject& subject, const Findings& findings, bool say_verified) {
  std::string text = remarks(subject.title) + plan::to_text(subject.plan);
  text += remarks("algorithm: " + subject.plan.algorithm);
  text += remarks(order_text(subject, findings));
  if (findings.cost) text += remarks(cost_text(subject, findings));
  if (!subject.explanation.empty()) text += "#\n" + remarks(subject.explanation);
  if (say_verified) text += remarks(kProved);
  print(text);
}

std::vector<JsonObject> json_devices(const PlanSubject& subject, const plan::Cost& cost) {
  std::vector<JsonObject> devices;
  for (std::size_t d = 0; d < cost.devices.size(); ++d) {
    devices.emplace_back();
    devices.back().set("name", subject.device_names[d]);
    if (!subject.has_sizes) continue;
    devices.back()
        .set("bytes_read", cost.devices[d].bytes_read)
        .set("bytes_written", cost.devices[d].bytes_written)
        .set("bytes_sent", cost.devices[d].bytes_sent)
        .set("bytes_received", cost.devices[d].bytes_received)
        .set("additions", cost.devices[d].additions);
  }
  return devices;
}

std::vector<JsonObject> json_packs(const PlanSubject& subject, const plan::Proof& proof) {
  std::vector<JsonObject> packs;
  for (std::size_t p = 0; p < proof.packs.size(); ++p) {
    packs.emplace_back();
    if (subject.has_sizes) packs.back().set("elements", subject.sizes.pack_lengths[p]);
    packs.back().set("canonical", proof.packs[p].canonical).set("expression", proof.packs[p].expression);
  }
  return packs;
}

void set_cost(JsonObject& line, const plan::Cost& cost, const std::optional<plan::LowerBound>& bound) {
  const auto level = [](const plan::LinkCost& of) {
    JsonObject object;
    object.set("messages", of.messages).set("bytes", of.bytes);
    return object;
  };
  line.set("across", level(cost.across)).set("inside", level(cost.inside));
  if (cost.native.steps > 0) {
    JsonObject native;
    native.set("steps", cost.native.steps).set("bytes", cost.native.bytes);
    line.set("native", native);
  }
  line.set("predicted_us", rounded(cost.seconds * 1e6, 3));
  if (bound) line.set("lower_bound_us", rounded(bound->seconds * 1e6, 3)).set("bound_by", bound->reason);
}

void print_json(const PlanSubject& subject, const Findings& findings, bool is_verified) {
  JsonObject line;
  line.set("title", subject.title).set("algorithm", subject.plan.algorithm).set("order", subject.plan.order);
  if (findings.proof) line.set("packs", json_packs(subject, *findings.proof));
  if (findings.cost) {
    line.set("steps", findings.cost->steps)
        .set("longest_chain", findings.cost->longest_chain)
        .set("messages", findings.cost->messages)
        .set("devices", json_devices(subject, *findings.cost));
    if (subject.has_sizes) set_cost(line, *findings.cost, findings.bound);
    if (!subject.machines.empty()) {  // it has sizes, as every call
      const MachineTraffic traffic = traffic_between_machines(subject);
      JsonObject object;
      object.set("messages", traffic.all.messages).set("bytes", traffic.all.bytes);
      line.set("between_machines", object.set("most_sent", traffic.most_sent));
    }
  }
  if (!findings.fault.empty()) line.set("fault", findings.fault);
  if (!subject.explanation.empty()) line.set("explanation", subject.explanation);
  line.set("verified", is_verified).set("text", plan::to_text(subject.plan));
  print_line(line.line());
}

void print_simulated(const PlanOptions& options, const api::SimulatedAllReduce& simulated,
                     const std::optional<plan::LowerBound>& bound, const plan::CostConstants& constants) {
  const plan::Cost& cost = simulated.cost;
  if (!options.json) {
    print(fmt::format("{}\nalgorithm: {}\norder of additions: {}\n{}{}{}{}", title_of(options),
                      simulated.algorithm, simulated.order, steps_text(cost), device_summary(cost),
                      levels_text(cost), time_text(cost, bound, constants)));
    return;
  }
  JsonObject line;
  line.set("title", title_of(options))
      .set("algorithm", simulated.algorithm)
      .set("order", simulated.order)
      .set("steps", cost.steps)
      .set("longest_chain", cost.longest_chain)
      .set("messages", cost.messages);
  set_cost(line, cost, bound);
  print_line(line.line());
}

PlanSubject subject_of(const PlanOptions& options) {
  if (options.file) return plan_of_file(options);
  return options.half ? plan_of_half(options) : plan_of_call(options);
}

void run_simulation(const PlanOptions& options, const plan::CostConstants& constants) {
  if (can_be_streamed(options)) {
    const api::SimulatedAllReduce simulated =
        api::simulate(study_of(options), elements_of(options), constants);
    return print_simulated(options, simulated, simulated.bound, constants);
  }
  const PlanSubject subject = subject_of(options);
  const plan::Cost cost = plan::cost(subject.plan, subject.sizes, constants);
  print_simulated(options, {subject.plan.algorithm, subject.plan.order, cost, {}},
                  plan::lower_bound(subject.plan, subject.sizes, constants), constants);
}

void draw(const PlanSubject& subject, const std::string& path) {
  std::vector<std::string> names;
  for (std::size_t d = 0; d < subject.drawn_names.size(); ++d) {
    names.push_back(fmt::format("{}: {}", d, subject.drawn_names[d]));
  }
  write_file(path, plan::to_svg(subject.plan, {subject.title, std::move(names)}));
}

}  // namespace

void run_plan(const PlanOptions& options) {
  const plan::CostConstants constants = use_links(options.links);
  if (options.simulate) return run_simulation(options, constants);
  const PlanSubject subject = subject_of(options);
  const bool only_words = options.explain && !options.text && !options.json;
  const Findings findings =
      only_words && !options.verify ? Findings{} : look_at(subject, constants, options.verify);
  if (options.draw) draw(subject, *options.draw);
  if (only_words) {
    print_words(subject, options.verify);
  } else if (options.json) {
    print_json(subject, findings, options.verify);
  } else {
    print_text(subject, findings, options.verify);
  }
}

}  // namespace onesum::cli
