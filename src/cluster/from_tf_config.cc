// TF_CONFIG, as TensorFlow's MultiWorkerMirroredStrategy reads it (a Kubernetes TFJob sets it):
//
//   {"cluster": {"chief": ["host:port"], "worker": ["host:port", …], "ps": […], "evaluator": […]},
//    "task": {"type": "worker", "index": 0}}
//
// Ranks count the chief, if there is one, and then the workers. Parameter servers and evaluators have no
// rank: as others' tasks they are passed over; an evaluator itself works alone, a parameter server cannot
// take part. Without a cluster TF_CONFIG names nobody.
#include <array>
#include <limits>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include <onesum/error.h>

#include "base/text.h"
#include "cluster/launchers.h"

namespace onesum::cluster {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kVariable = "TF_CONFIG";
constexpr std::array<std::string_view, 4> kJobs = {"chief", "worker", "ps", "evaluator"};
constexpr std::size_t kLongest = std::size_t{16} << 20;

[[noreturn]] void refuse_part(const std::string& part, const std::string& found,
                              const std::string& expected) {
  throw Error(ErrorCode::kInvalidArgument,
              "environment variable TF_CONFIG: " + part + " is " + found + "; expected " + expected);
}

std::string shown(const Json& json) {
  return quoted(json.dump(-1, ' ', true, Json::error_handler_t::replace));
}

Json parse_json(std::string_view text) {
  if (text.size() > kLongest) refuse_variable(kVariable, text, "at most 16 MiB");
  try {
    Json json = Json::parse(text);
    if (json.is_object()) return json;
  } catch (const Json::parse_error& error) {
    refuse_variable(kVariable, text, "a JSON object; reading stopped at byte " + std::to_string(error.byte));
  } catch (const Json::exception&) {
    refuse_variable(kVariable, text, "a JSON object with numbers that a double can hold");
  }
  refuse_variable(kVariable, text, R"(a JSON object with "cluster" and "task")");
}

const Json* member(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found == json.end() || found->is_null() ? nullptr : &*found;
}

std::vector<HostPort> addresses(const Json& cluster, const char* job) {
  const Json* const list = member(cluster, job);
  if (list == nullptr) return {};
  const std::string part = std::string("cluster.") + job;
  if (!list->is_array()) refuse_part(part, shown(*list), "a list of HOST:PORT");
  std::vector<HostPort> result;
  for (const Json& entry : *list) {
    const auto address =
        entry.is_string() ? parse_host_port(entry.get_ref<const std::string&>()) : std::nullopt;
    if (!address)
      refuse_part(part + "[" + std::to_string(result.size()) + "]", shown(entry),
                  std::string(kHostPortExpected));
    result.push_back(*address);
  }
  return result;
}

void refuse_unknown_jobs(const Json& cluster) {
  if (!cluster.is_object()) refuse_part("cluster", shown(cluster), "an object of " + listed(kJobs));
  for (const auto& [job, list] : cluster.items()) {
    if (std::ranges::find(kJobs, job) == kJobs.end())
      refuse_part("cluster", "with the job " + quoted(job), listed(kJobs));
  }
}

struct Task {
  std::string type;
  int index = 0;
};

// TensorFlow takes an index in quotes, too.
int index_of(const Json& task) {
  const Json* const index = member(task, "index");
  const std::string expected = "a number from 0";
  if (index == nullptr) refuse_part("task.index", "missing", expected);
  const std::string text = index->is_string() ? index->get<std::string>() : index->dump();
  const auto number = parse_number(text, std::numeric_limits<int>::max());
  if (!number) refuse_part("task.index", shown(*index), expected);
  return static_cast<int>(*number);
}

Task task_of(const Json& config) {
  const Json* const task = member(config, "task");
  if (task == nullptr || !task->is_object())
    refuse_part("task", task == nullptr ? "missing" : shown(*task), R"({"type": …, "index": …})");
  const Json* const type = member(*task, "type");
  if (type == nullptr || !type->is_string() ||
      std::ranges::find(kJobs, type->get_ref<const std::string&>()) == kJobs.end()) {
    refuse_part("task.type", type == nullptr ? "missing" : shown(*type), listed(kJobs));
  }
  return {type->get<std::string>(), index_of(*task)};
}

void check_index(const Task& task, std::size_t tasks) {
  if (static_cast<std::size_t>(task.index) < tasks) return;
  refuse_part("task.index", std::to_string(task.index),
              "less than the number of tasks in cluster." + task.type + ", " + std::to_string(tasks));
}

Device named(const std::string& job, std::size_t task) {
  return {"/job:" + job + "/replica:0/task:" + std::to_string(task)};
}

Invitation evaluator(LauncherReader& reader, const Task& task) {
  reader.honour(kVariable, "an evaluator works alone, beside the chief and the workers");
  Invitation invitation;
  invitation.workers = {named(task.type, static_cast<std::size_t>(task.index))};
  return reader.finish(std::move(invitation));
}

}  // namespace

std::optional<Invitation> invited_by_tf_config(const Context& context, std::string_view evidence) {
  LauncherReader reader(context.environment, "TF_CONFIG", evidence);
  const Json config = parse_json(*reader.find(kVariable));
  const Json* const cluster = member(config, "cluster");
  if (cluster == nullptr || cluster->empty()) {
    context.passed_over.push_back(
        context.environment.note(kVariable, "passed over: it names no cluster", "TF_CONFIG"));
    return std::nullopt;
  }
  refuse_unknown_jobs(*cluster);
  const std::vector<HostPort> chiefs = addresses(*cluster, "chief");
  const std::vector<HostPort> workers = addresses(*cluster, "worker");
  if (chiefs.size() > 1)
    refuse_part("cluster.chief", std::to_string(chiefs.size()) + " tasks", "at most one");
  const std::size_t size = chiefs.size() + workers.size();
  if (size > kMostWorkers)
    refuse_part("cluster", std::to_string(size) + " workers", "at most " + std::to_string(kMostWorkers));

  const Task task = task_of(config);
  if (task.type == "evaluator") return evaluator(reader, task);
  if (task.type == "ps") {
    refuse_part("task.type", "\"ps\"",
                "chief or worker: parameter servers take no part in reductions among workers");
  }
  check_index(task, task.type == "chief" ? chiefs.size() : workers.size());

  Invitation invitation;
  invitation.size = static_cast<int>(size);
  invitation.rank = task.index + (task.type == "worker" ? static_cast<int>(chiefs.size()) : 0);
  for (std::size_t i = 0; i < chiefs.size(); ++i) invitation.workers.push_back(named("chief", i));
  for (std::size_t i = 0; i < workers.size(); ++i) invitation.workers.push_back(named("worker", i));
  const HostPort& first = chiefs.empty() ? workers.front() : chiefs.front();
  invitation.job = to_string(first);
  if (size > 1) invitation.venue = first;
  reader.honour(kVariable, context.config.address
                               ? "rank, size and names of the workers"
                               : "rank, size and names of the workers, and where worker 0 is");
  return reader.finish(std::move(invitation));
}

}  // namespace onesum::cluster
