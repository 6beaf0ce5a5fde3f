#include "cli/info_cluster.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "api/participants.h"
#include "cli/json_object.h"
#include "cli/output.h"
#include "cli/table.h"
#include "cluster/invitation.h"

namespace onesum::cli {
namespace {

using cluster::Invitation;
using cluster::Variable;

std::string workers_text(const Invitation& invitation) {
  constexpr std::size_t kMostNamed = 8;
  std::vector<std::string> names;
  for (const Device& worker : invitation.workers) {
    if (names.size() == kMostNamed) break;
    names.push_back(worker.to_string());
  }
  if (invitation.workers.size() > kMostNamed) {
    names.back() = "…";
    names.push_back(invitation.workers.back().to_string());
  }
  return fmt::format("{}: {}", invitation.size, fmt::join(names, " "));
}

std::string local_text(const Invitation& invitation) {
  const auto number = [](std::optional<int> value) { return value ? std::to_string(*value) : "unknown"; };
  return fmt::format("workers {}, local rank {}", number(invitation.local_size),
                     number(invitation.local_rank));
}

std::string source_text(const Invitation& invitation) {
  return invitation.source == "none" ? "no launcher: this process is alone" : invitation.source;
}

void print_table(std::string_view title, const std::vector<Variable>& variables) {
  if (variables.empty()) return;
  std::vector<std::vector<std::string>> rows;
  for (const Variable& variable : variables)
    rows.push_back({variable.name, variable.value, variable.decided, variable.set_by});
  print_line("");
  print(table_of({{title, 0, true}, {"value", 0, true}, {"decided", 0, true}, {"set by", 0, true}}, rows));
}

void print_text(const Invitation& invitation) {
  const auto line = [](std::string_view name, std::string_view value) {
    print_line(fmt::format("{:<18} {}", name, value));
  };
  const Device& own = invitation.workers[static_cast<std::size_t>(invitation.rank)];
  line("named by", source_text(invitation));
  line("workers", workers_text(invitation));
  line("this worker", fmt::format("rank {}, {}", invitation.rank, own.to_string()));
  line("on this machine", local_text(invitation));
  if (!invitation.job.empty()) line("job", invitation.job);
  line("worker 0", describe(invitation.venue));
  print_table("variable", invitation.variables);
  print_table("not honoured", invitation.passed_over);
}

std::vector<JsonObject> json_of(const std::vector<Variable>& variables) {
  std::vector<JsonObject> objects;
  for (const Variable& variable : variables) {
    objects.emplace_back()
        .set("name", variable.name)
        .set("value", variable.value)
        .set("decided", variable.decided)
        .set("set_by", variable.set_by);
  }
  return objects;
}

void print_json(const Invitation& invitation) {
  std::vector<std::string> workers;
  for (const Device& worker : invitation.workers) workers.push_back(worker.to_string());
  JsonObject object;
  object.set("source", invitation.source)
      .set("rank", invitation.rank)
      .set("size", invitation.size)
      .set("job", invitation.job)
      .set("workers", workers)
      .set("worker_0", describe(invitation.venue));
  if (invitation.local_rank) object.set("local_rank", *invitation.local_rank);
  if (invitation.local_size) object.set("local_size", *invitation.local_size);
  object.set("variables", json_of(invitation.variables)).set("not_honoured", json_of(invitation.passed_over));
  print_line(object.line());
}

}  // namespace

void print_cluster(bool json) {
  const Invitation invitation = api::participants();
  json ? print_json(invitation) : print_text(invitation);
}

}  // namespace onesum::cli
