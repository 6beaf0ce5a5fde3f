#include "cli/plan_command.h"

#include <fmt/format.h>

#include <onesum/error.h>

#include "cli/json_object.h"
#include "cli/output.h"
#include "cli/plan_subject.h"
#include "cli/quantities.h"
#include "cli/table.h"
#include "plan/cost.h"
#include "plan/draw.h"
#include "plan/text.h"
#include "plan/verify.h"

namespace onesum::cli {
namespace {

constexpr const char* kProved =
    "verified: no race, no deadlock, every result holds every replica exactly once, in this order";

// What is known of a plan. A plan from a file may be wrong: then the proof is missing, and the message says
// why.
struct Findings {
  std::optional<plan::Proof> proof;
  std::optional<plan::Cost> cost;
  std::string fault;
};

Findings look_at(const PlanSubject& subject, bool must_be_right) {
  Findings findings;
  try {
    findings.proof = plan::verify(subject.plan);
    findings.cost = plan::cost(subject.plan, subject.sizes);
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

std::string cost_table(const PlanSubject& subject, const plan::Cost& cost) {
  std::vector<std::vector<std::string>> rows;
  for (std::size_t d = 0; d < cost.devices.size(); ++d) {
    const plan::DeviceCost& device = cost.devices[d];
    rows.push_back({std::to_string(d), subject.device_names[d], std::to_string(device.bytes_read),
                    std::to_string(device.bytes_written), std::to_string(device.bytes_sent),
                    std::to_string(device.additions)});
  }
  return table_of(
      {{"device"}, {"name", 0, true}, {"bytes read"}, {"bytes written"}, {"bytes sent"}, {"additions"}},
      rows);
}

std::string order_text(const PlanSubject& subject, const Findings& findings) {
  std::string text = fmt::format("order of additions: {}\n", subject.plan.order);
  if (!findings.proof) return text + fmt::format("not right: {}\n", findings.fault);
  for (std::size_t p = 0; p < findings.proof->packs.size(); ++p) {
    text += fmt::format("pack {} = {}\n", p, findings.proof->packs[p].expression);
  }
  return text;
}

std::string cost_text(const PlanSubject& subject, const plan::Cost& cost) {
  std::string text = fmt::format("steps: {}, the longest chain {}; messages: {}\n", cost.steps,
                                 cost.longest_chain, cost.messages);
  if (!subject.has_sizes) return text + "bytes and time: unknown without --bytes\n";
  text += cost_table(subject, cost);
  return text + fmt::format("predicted time: {} (at {} GB/s of memory traffic, {} a step)\n",
                            format_time(cost.seconds), format_number(1e-9 / plan::CostConstants().gamma),
                            format_time(plan::CostConstants().step));
}

void print_text(const PlanSubject& subject, const Findings& findings, bool say_verified) {
  std::string text = remarks(subject.title) + plan::to_text(subject.plan);
  text += remarks(order_text(subject, findings));
  if (findings.cost) text += remarks(cost_text(subject, *findings.cost));
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

void print_json(const PlanSubject& subject, const Findings& findings, bool is_verified) {
  JsonObject line;
  line.set("title", subject.title).set("algorithm", subject.plan.algorithm).set("order", subject.plan.order);
  if (findings.proof) line.set("packs", json_packs(subject, *findings.proof));
  if (findings.cost) {
    line.set("steps", findings.cost->steps)
        .set("longest_chain", findings.cost->longest_chain)
        .set("messages", findings.cost->messages)
        .set("devices", json_devices(subject, *findings.cost));
    if (subject.has_sizes) line.set("predicted_us", rounded(findings.cost->seconds * 1e6, 3));
  }
  if (!findings.fault.empty()) line.set("fault", findings.fault);
  line.set("verified", is_verified).set("text", plan::to_text(subject.plan));
  print_line(line.line());
}

void draw(const PlanSubject& subject, const std::string& path) {
  std::vector<std::string> names;
  for (std::size_t d = 0; d < subject.device_names.size(); ++d) {
    names.push_back(fmt::format("{}: {}", d, subject.device_names[d]));
  }
  write_file(path, plan::to_svg(subject.plan, {subject.title, std::move(names)}));
}

}  // namespace

void run_plan(const PlanOptions& options) {
  const PlanSubject subject = options.file ? plan_of_file(options) : plan_of_call(options);
  const Findings findings = look_at(subject, options.verify);
  if (options.draw) draw(subject, *options.draw);
  if (options.json) {
    print_json(subject, findings, options.verify);
  } else {
    print_text(subject, findings, options.verify);
  }
}

}  // namespace onesum::cli
