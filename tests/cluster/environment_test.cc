// Every launcher, by the variables it sets.
#include "cluster/environment.h"

#include <algorithm>
#include <initializer_list>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/expect_error.h"

namespace onesum::cluster {
namespace {

using testing::expect_invalid;
using ::testing::HasSubstr;
using ::testing::Not;

using Entries = std::vector<std::string>;

constexpr unsigned kUid = 1000;

Invitation read(const Entries& entries, const std::function<PmixJob()>& ask_pmix = {}) {
  return read_invitation(std::vector<std::string_view>(entries.begin(), entries.end()), {kUid, ask_pmix});
}

Entries operator+(Entries entries, const Entries& more) {
  entries.insert(entries.end(), more.begin(), more.end());
  return entries;
}

// The entries with `name` set to `value`, or without it.
Entries with(Entries entries, const std::string& name, const char* value) {
  std::erase_if(entries, [&](const std::string& entry) { return entry.starts_with(name + "="); });
  if (value != nullptr) entries.push_back(name + "=" + value);
  return entries;
}

// That `name` is required, and is refused with this value.
void expect_missing(const Entries& entries, const std::string& name) {
  expect_invalid([&] { read(with(entries, name, nullptr)); },
                 {"variable " + name + " is not set", "expected"});
}
void expect_refused(const Entries& entries, const std::string& name, const char* value,
                    std::string_view expected) {
  expect_invalid([&] { read(with(entries, name, value)); },
                 {"variable " + name + " is \"" + value + "\"", expected});
}

const Variable* find(const std::vector<Variable>& variables, std::string_view name) {
  const auto found = std::ranges::find(variables, name, &Variable::name);
  return found == variables.end() ? nullptr : &*found;
}

// Of each entry that decides something there is a note.
void expect_honoured(const Invitation& invitation, std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) EXPECT_NE(find(invitation.variables, name), nullptr) << name;
  EXPECT_EQ(invitation.variables.size(), names.size());
}

std::vector<std::string> names_of(const Invitation& invitation) {
  std::vector<std::string> names;
  for (const Device& worker : invitation.workers) names.push_back(worker.to_string());
  return names;
}

const Entries kRun = {"ONESUM_RANK=1", "ONESUM_SIZE=3", "ONESUM_JOB=j7"};
const Entries kTfConfig = {
    R"(TF_CONFIG={"cluster": {"chief": ["c0:2222"], "worker": ["w0:1", "w1:2"], "ps": ["p0:3"]},)"
    R"( "task": {"type": "worker", "index": 1}, "environment": "cloud"})"};
const Entries kTorchrun = {"RANK=3",
                           "WORLD_SIZE=4",
                           "LOCAL_RANK=1",
                           "MASTER_ADDR=n1",
                           "MASTER_PORT=29500",
                           "LOCAL_WORLD_SIZE=2",
                           "TORCHELASTIC_RUN_ID=r",
                           "TORCHELASTIC_RESTART_COUNT=2"};
const Entries kSlurm = {"SLURM_PROCID=5",
                        "SLURM_NTASKS=7",
                        "SLURM_STEP_NUM_TASKS=7",
                        "SLURM_LOCALID=1",
                        "SLURM_NODEID=2",
                        "SLURM_JOB_ID=1234567",
                        "SLURM_STEP_ID=2",
                        "SLURM_JOB_NODELIST=other[1-9]",
                        "SLURM_STEP_NODELIST=n[08-10],m1",
                        "SLURM_STEP_TASKS_PER_NODE=2(x3),1"};
const Entries kOpenMpi = {"OMPI_COMM_WORLD_RANK=2",
                          "OMPI_COMM_WORLD_SIZE=4",
                          "OMPI_COMM_WORLD_LOCAL_RANK=0",
                          "OMPI_COMM_WORLD_LOCAL_SIZE=2",
                          "PMIX_RANK=2",
                          "PMIX_NAMESPACE=88"};
const Entries kMpich = {"PMI_RANK=1", "PMI_SIZE=2", "PMI_FD=9", "MPI_LOCALRANKID=0", "MPI_LOCALNRANKS=1"};

TEST(Environment, WithoutLauncherTheProcessIsAlone) {
  const Invitation alone = read({"HOME=/", "PATH"});
  EXPECT_EQ(alone.rank, 0);
  EXPECT_EQ(alone.size, 1);
  EXPECT_EQ(alone.source, "none");
  EXPECT_EQ(alone.venue, Venue(Nowhere{}));
  EXPECT_THAT(names_of(alone), ::testing::ElementsAre("/job:localhost/replica:0/task:0"));
  EXPECT_TRUE(alone.variables.empty() && alone.passed_over.empty());
  EXPECT_TRUE(alone.is_on_one_machine());
}

TEST(Environment, OnesumRun) {
  const Invitation invitation = read(kRun);
  EXPECT_EQ(invitation.source, "onesum run");
  EXPECT_EQ(invitation.rank, 1);
  EXPECT_EQ(invitation.size, 3);
  EXPECT_EQ(invitation.job, "j7");
  EXPECT_EQ(invitation.local_rank, 1);
  EXPECT_EQ(invitation.local_size, 3);
  EXPECT_EQ(invitation.venue, Venue(LocalSocket{"onesum-1000-j7"}));
  EXPECT_THAT(names_of(invitation),
              ::testing::ElementsAre("/job:worker/replica:0/task:0", "/job:worker/replica:0/task:1",
                                     "/job:worker/replica:0/task:2"));
  expect_honoured(invitation, {"ONESUM_RANK", "ONESUM_SIZE", "ONESUM_JOB"});
  for (const char* name : {"ONESUM_RANK", "ONESUM_SIZE", "ONESUM_JOB"}) expect_missing(kRun, name);
  expect_refused(kRun, "ONESUM_RANK", "3", "less than ONESUM_SIZE, 3");
  EXPECT_EQ(read({"ONESUM_RANK=0", "ONESUM_SIZE=1", "ONESUM_JOB=j"}).venue, Venue(Nowhere{}));
}

TEST(Environment, ByHandWithAnAddress) {
  const Invitation invitation = read({"ONESUM_RANK=1", "ONESUM_SIZE=2", "ONESUM_ADDRESS=[fe80::1]:2000"});
  EXPECT_EQ(invitation.venue, Venue(HostPort{"fe80::1", 2000}));
  EXPECT_EQ(invitation.job, "[fe80::1]:2000");
  EXPECT_EQ(invitation.local_size, std::nullopt);
  EXPECT_FALSE(invitation.is_on_one_machine());
}

TEST(Environment, TfConfig) {
  const Invitation invitation = read(kTfConfig);
  EXPECT_EQ(invitation.source, "TF_CONFIG");
  EXPECT_EQ(invitation.rank, 2);
  EXPECT_EQ(invitation.size, 3);
  EXPECT_EQ(invitation.job, "c0:2222");
  EXPECT_EQ(invitation.venue, Venue(HostPort{"c0", 2222}));
  EXPECT_THAT(names_of(invitation),
              ::testing::ElementsAre("/job:chief/replica:0/task:0", "/job:worker/replica:0/task:0",
                                     "/job:worker/replica:0/task:1"));
  EXPECT_EQ(invitation.local_size, std::nullopt);
  expect_honoured(invitation, {"TF_CONFIG"});
}

Invitation read_tf(const std::string& cluster, const std::string& task) {
  return read({"TF_CONFIG={\"cluster\": " + cluster + ", \"task\": " + task + "}"});
}

TEST(Environment, TfConfigOfOtherForms) {
  const Invitation first = read_tf(R"({"worker": ["a:1", "b:1"]})", R"({"type": "worker", "index": "0"})");
  EXPECT_EQ(first.rank, 0);
  EXPECT_EQ(first.venue, Venue(HostPort{"a", 1}));
  EXPECT_EQ(read_tf(R"({"chief": ["c:1"], "worker": ["a:1"]})", R"({"type": "chief", "index": 0})").rank, 0);
  const Invitation single = read_tf(R"({"worker": ["a:1"]})", R"({"type": "worker", "index": 0})");
  EXPECT_EQ(single.venue, Venue(Nowhere{}));
  EXPECT_EQ(single.source, "TF_CONFIG");
  for (const char* nobody :
       {"TF_CONFIG={}", R"(TF_CONFIG={"cluster": {}})", R"(TF_CONFIG={"cluster": null})"}) {
    const Invitation none = read({nobody});
    EXPECT_EQ(none.source, "none") << nobody;
    ASSERT_EQ(none.passed_over.size(), 1U);
    EXPECT_THAT(none.passed_over[0].decided, HasSubstr("names no cluster"));
  }
  EXPECT_TRUE(read({"TF_CONFIG="}).passed_over.empty());
}

TEST(Environment, TfConfigsEvaluatorsWorkAloneAndParameterServersNotAtAll) {
  const char* const cluster = R"({"worker": ["a:1", "b:1"], "ps": ["p:1"]})";
  const Invitation evaluator = read_tf(cluster, R"({"type": "evaluator", "index": 0})");
  EXPECT_EQ(evaluator.size, 1);
  EXPECT_EQ(evaluator.source, "TF_CONFIG");
  EXPECT_THAT(names_of(evaluator), ::testing::ElementsAre("/job:evaluator/replica:0/task:0"));
  expect_invalid([&] { read_tf(cluster, R"({"type": "ps", "index": 0})"); },
                 {"TF_CONFIG: task.type is \"ps\"", "chief or worker"});
}

TEST(Environment, TfConfigIsRefusedByItsPart) {
  const char* const task = R"({"type": "worker", "index": 0})";
  const char* const cluster = R"({"worker": ["a:1", "b:1"]})";
  for (const char* text : {"{", "[]", "1", "worker", "1e999", "{\"cluster\": {\"worker\": [\"a:1\"]", "\x01"})
    expect_invalid([&] { read({std::string("TF_CONFIG=") + text}); },
                   {"variable TF_CONFIG is", "a JSON object"});
  expect_invalid([&] { read_tf("[1]", task); }, {"cluster is", "chief, worker, ps or evaluator"});
  expect_invalid([&] { read_tf(R"({"workers": ["a:1"]})", task); }, {"\"workers\"", "chief, worker"});
  expect_invalid([&] { read_tf(R"({"worker": "a:1"})", task); },
                 {"cluster.worker is", "a list of HOST:PORT"});
  expect_invalid([&] { read_tf(R"({"worker": ["a:1", "b"]})", task); },
                 {"cluster.worker[1] is", "b", "HOST:PORT"});
  expect_invalid([&] { read_tf(R"({"worker": ["a:1", 7]})", task); }, {"cluster.worker[1] is", "HOST:PORT"});
  expect_invalid([&] { read_tf(R"({"chief": ["a:1", "b:1"]})", R"({"type": "chief", "index": 0})"); },
                 {"cluster.chief is 2 tasks", "at most one"});
  expect_invalid([&] { read({std::string("TF_CONFIG={\"cluster\": ") + cluster + "}"}); },
                 {"task is missing"});
  expect_invalid([&] { read_tf(cluster, "[]"); }, {"task is", "type"});
  expect_invalid([&] { read_tf(cluster, R"({"index": 0})"); }, {"task.type is missing"});
  expect_invalid([&] { read_tf(cluster, R"({"type": "master", "index": 0})"); },
                 {"task.type is", "master", "chief"});
  expect_invalid([&] { read_tf(cluster, R"({"type": "worker"})"); }, {"task.index is missing"});
  for (const char* index : {"-1", "\"x\"", "0.5", "[]", "99999999999"})
    expect_invalid([&] { read_tf(cluster, std::string(R"({"type": "worker", "index": )") + index + "}"); },
                   {"task.index is"});
  expect_invalid([&] { read_tf(cluster, R"({"type": "worker", "index": 2})"); },
                 {"task.index is 2", "less than the number of tasks in cluster.worker, 2"});
  expect_invalid([&] { read_tf(cluster, R"({"type": "chief", "index": 0})"); }, {"cluster.chief, 0"});
}

TEST(Environment, Torchrun) {
  const Invitation invitation = read(kTorchrun);
  EXPECT_EQ(invitation.source, "torchrun");
  EXPECT_EQ(invitation.rank, 3);
  EXPECT_EQ(invitation.size, 4);
  EXPECT_EQ(invitation.local_rank, 1);
  EXPECT_EQ(invitation.local_size, 2);
  EXPECT_EQ(invitation.job, "torchrun-r-2-29500");
  EXPECT_EQ(invitation.venue, Venue(HostPort{"n1", 29501}));
  EXPECT_EQ(invitation.workers[3], Device("/job:worker/replica:0/task:3"));
  expect_honoured(invitation, {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR",
                               "MASTER_PORT", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT"});
}

TEST(Environment, TorchrunOnOneMachineNeedsNoPort) {
  EXPECT_EQ(read(with(kTorchrun, "LOCAL_WORLD_SIZE", "4")).venue,
            Venue(LocalSocket{"onesum-1000-torchrun-r-2-29500"}));
  EXPECT_EQ(read({"RANK=0", "WORLD_SIZE=1", "TORCHELASTIC_RUN_ID=r"}).venue, Venue(Nowhere{}));
}

TEST(Environment, OthersThatStartPyTorch) {
  const Invitation invitation =
      read({"RANK=1", "WORLD_SIZE=2", "MASTER_ADDR=job-master-0", "MASTER_PORT=23456"});
  EXPECT_EQ(invitation.source, "torchrun");
  EXPECT_EQ(invitation.venue, Venue(HostPort{"job-master-0", 23457}));
  EXPECT_EQ(invitation.local_size, std::nullopt);
}

TEST(Environment, TorchrunIncompleteOrContradictory) {
  for (const char* name : {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"})
    expect_missing(kTorchrun, name);
  expect_invalid([] { read({"RANK=1", "MASTER_ADDR=a"}); },
                 {"WORLD_SIZE is not set", "because RANK is \"1\"", "torchrun"});
  expect_refused(kTorchrun, "RANK", "4", "less than WORLD_SIZE, 4");
  expect_refused(kTorchrun, "RANK", "x", "a number from 0");
  expect_refused(kTorchrun, "WORLD_SIZE", "0", "a number from 1");
  expect_refused(kTorchrun, "LOCAL_RANK", "2", "less than LOCAL_WORLD_SIZE, 2");
  expect_refused(kTorchrun, "LOCAL_WORLD_SIZE", "5", "at most WORLD_SIZE, 4");
  expect_refused(kTorchrun, "MASTER_PORT", "65535", "1 to 65534");
  expect_refused(kTorchrun, "MASTER_ADDR", "n1:80", "without a port");
}

TEST(Environment, AStrayRankIsPassedOver) {
  const Invitation invitation = read({"RANK=3", "WORLD_SIZE=4"});
  EXPECT_EQ(invitation.source, "none");
  ASSERT_NE(find(invitation.passed_over, "RANK"), nullptr);
  EXPECT_THAT(find(invitation.passed_over, "RANK")->decided, HasSubstr("MASTER_ADDR"));
  EXPECT_EQ(read({"MASTER_ADDR=a", "MASTER_PORT=1", "WORLD_SIZE=2"}).source, "none");
  EXPECT_EQ(read({"RANK=", "MASTER_ADDR=a"}).source, "none");
}

TEST(Environment, Slurm) {
  const Invitation invitation = read(kSlurm);
  EXPECT_EQ(invitation.source, "Slurm");
  EXPECT_EQ(invitation.rank, 5);
  EXPECT_EQ(invitation.size, 7);
  EXPECT_EQ(invitation.local_rank, 1);
  EXPECT_EQ(invitation.local_size, 2);
  EXPECT_EQ(invitation.job, "slurm-1234567.2");
  EXPECT_EQ(invitation.venue, Venue(HostPort{"n08", 20000 + (1234567 + 2 * 1009) % 10000}));
  expect_honoured(invitation,
                  {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "SLURM_NODEID", "SLURM_JOB_ID",
                   "SLURM_STEP_ID", "SLURM_STEP_NODELIST", "SLURM_STEP_TASKS_PER_NODE"});
}

TEST(Environment, SlurmOfOtherForms) {
  EXPECT_EQ(read(with(kSlurm, "SLURM_STEP_NODELIST", "n7")).venue,
            Venue(LocalSocket{"onesum-1000-slurm-1234567.2"}));
  EXPECT_EQ(read(with(kSlurm, "SLURM_STEP_NODELIST", "n7")).local_size, 7);
  EXPECT_EQ(std::get<HostPort>(read(with(kSlurm, "SLURM_STEP_NODELIST", nullptr)).venue).host, "other1");
  EXPECT_EQ(read(with(kSlurm, "SLURM_STEP_NUM_TASKS", nullptr)).size, 7);
  EXPECT_EQ(read(with(kSlurm, "SLURM_NTASKS", "9")).size, 7);  // the allocation's, not the step's
  EXPECT_EQ(read(with(kSlurm, "SLURM_STEP_TASKS_PER_NODE", nullptr)).local_size, std::nullopt);
  const Entries older = with(kSlurm, "SLURM_STEP_ID", nullptr) + Entries{"SLURM_STEPID=2"};
  EXPECT_EQ(read(older).venue, read(kSlurm).venue);
}

TEST(Environment, SlurmShellsAreAlone) {
  for (const Entries& shell :
       {with(kSlurm, "SLURM_PROCID", nullptr), with(kSlurm, "SLURM_STEP_ID", nullptr),
        with(kSlurm, "SLURM_STEP_ID", "4294967291"), with(kSlurm, "SLURM_STEP_ID", "4294967290")}) {
    const Invitation invitation = read(shell);
    EXPECT_EQ(invitation.source, "none");
    ASSERT_EQ(invitation.passed_over.size(), 1U);
    EXPECT_THAT(invitation.passed_over[0].decided, HasSubstr("srun did not start it"));
  }
}

// On further nodes mpirun's daemon is a task of Slurm's, and its children inherit its variables.
TEST(Environment, MpirunInsideSlurmCounts) {
  const Invitation open_mpi = read(kSlurm + kOpenMpi);
  EXPECT_EQ(open_mpi.source, "Open MPI (PMIx)");
  ASSERT_NE(find(open_mpi.passed_over, "SLURM_PROCID"), nullptr);
  EXPECT_THAT(find(open_mpi.passed_over, "SLURM_PROCID")->decided, HasSubstr("OMPI_COMM_WORLD_RANK"));
  EXPECT_EQ(read(kSlurm + kMpich).source, "MPICH (PMI)");
  // srun itself speaks PMI and PMIx, too.
  EXPECT_EQ(read(kSlurm + Entries{"PMI_RANK=5", "PMI_SIZE=7", "PMI_FD=9"}).source, "Slurm");
  EXPECT_EQ(read(kSlurm + Entries{"PMIX_RANK=5", "PMIX_NAMESPACE=s"}).source, "Slurm");
}

TEST(Environment, SlurmIncompleteOrContradictory) {
  expect_missing(kSlurm, "SLURM_JOB_ID");
  expect_invalid([] { read(with(with(kSlurm, "SLURM_STEP_NUM_TASKS", nullptr), "SLURM_NTASKS", nullptr)); },
                 {"SLURM_STEP_NUM_TASKS is not set", "because SLURM_PROCID is \"5\""});
  expect_invalid(
      [] { read(with(with(kSlurm, "SLURM_STEP_NODELIST", nullptr), "SLURM_JOB_NODELIST", nullptr)); },
      {"SLURM_STEP_NODELIST is not set"});
  expect_refused(kSlurm, "SLURM_PROCID", "7", "less than SLURM_STEP_NUM_TASKS, 7");
  expect_refused(kSlurm, "SLURM_STEP_NODELIST", "n[8-", "a list of nodes such as");
  expect_refused(kSlurm, "SLURM_STEP_TASKS_PER_NODE", "2(x", "tasks of each node such as");
  expect_refused(kSlurm, "SLURM_STEP_TASKS_PER_NODE", "1(x7)", "more tasks on this node than SLURM_LOCALID");
  expect_refused(kSlurm, "SLURM_STEP_TASKS_PER_NODE", "8(x3)", "no more than the step has");
  expect_refused(kSlurm, "SLURM_STEP_ID", "two", "a number from 0");
  expect_refused(with(kSlurm, "SLURM_PROCID", "0"), "SLURM_NODEID", "2", "ONESUM_ADDRESS");
}

TEST(Environment, OpenMpi) {
  const Invitation invitation = read(kOpenMpi);
  EXPECT_EQ(invitation.source, "Open MPI (PMIx)");
  EXPECT_EQ(invitation.rank, 2);
  EXPECT_EQ(invitation.size, 4);
  EXPECT_EQ(invitation.local_rank, 0);
  EXPECT_EQ(invitation.local_size, 2);
  EXPECT_EQ(invitation.job, "pmix-88");
  EXPECT_EQ(invitation.venue, Venue(AskPmix{}));
  expect_honoured(invitation, {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
                               "OMPI_COMM_WORLD_LOCAL_SIZE", "PMIX_NAMESPACE"});
  EXPECT_EQ(read(with(kOpenMpi, "OMPI_COMM_WORLD_LOCAL_SIZE", "4")).venue,
            Venue(LocalSocket{"onesum-1000-pmix-88"}));
  expect_missing(kOpenMpi, "OMPI_COMM_WORLD_SIZE");
  expect_missing(kOpenMpi, "PMIX_NAMESPACE");
  expect_refused(kOpenMpi, "PMIX_RANK", "1", "the same as OMPI_COMM_WORLD_RANK, 2");
}

TEST(Environment, OtherPmixServersAreAskedForTheSize) {
  const Entries entries = {"PMIX_RANK=1", "PMIX_NAMESPACE=prte@1"};
  const Invitation invitation = read(entries, [] { return PmixJob{3, 1, 2}; });
  EXPECT_EQ(invitation.source, "PMIx");
  EXPECT_EQ(invitation.size, 3);
  EXPECT_EQ(invitation.workers.size(), 3U);
  EXPECT_EQ(invitation.venue, Venue(AskPmix{}));
  EXPECT_EQ(read(entries, [] { return PmixJob{2, 1, 2}; }).venue,
            Venue(LocalSocket{"onesum-1000-pmix-prte@1"}));
  expect_invalid([&] { read(entries, [] { return PmixJob{1, {}, {}}; }); },
                 {"PMIX_RANK is \"1\"", "less than"});
  EXPECT_EQ(read({"PMIX_RANK=1"}).source, "none");
}

TEST(Environment, Mpich) {
  const Invitation invitation = read(kMpich);
  EXPECT_EQ(invitation.source, "MPICH (PMI)");
  EXPECT_EQ(invitation.rank, 1);
  EXPECT_EQ(invitation.size, 2);
  EXPECT_EQ(invitation.venue, Venue(AskPmi{9}));
  EXPECT_EQ(invitation.local_size, 1);
  EXPECT_TRUE(read(with(kMpich, "MPI_LOCALNRANKS", "2")).is_on_one_machine());
  expect_missing(kMpich, "PMI_SIZE");
  expect_missing(kMpich, "PMI_FD");
  EXPECT_EQ(read({"PMI_RANK=0", "PMI_SIZE=1"}).venue, Venue(Nowhere{}));
}

TEST(Environment, TheOrderIsTheDocumentedOne) {
  const std::pair<Entries, std::string> in_order[] = {{kRun, "onesum run"},
                                                      {kTfConfig, "TF_CONFIG"},
                                                      {kTorchrun, "torchrun"},
                                                      {kSlurm, "Slurm"},
                                                      {{"PMIX_RANK=0", "PMIX_NAMESPACE=x"}, "PMIx"},
                                                      {{"PMI_RANK=0", "PMI_SIZE=1"}, "MPICH (PMI)"}};
  for (auto first = std::begin(in_order); first != std::end(in_order); ++first) {
    Entries all;
    for (auto entry = std::end(in_order); entry != first; --entry) all = all + std::prev(entry)->first;
    const Invitation invitation = read(all, [] { return PmixJob{1, {}, {}}; });
    EXPECT_EQ(invitation.source, first->second);
    const auto later = static_cast<std::size_t>(std::end(in_order) - first - 1);
    ASSERT_EQ(invitation.passed_over.size(), later);
    for (const Variable& variable : invitation.passed_over)
      EXPECT_THAT(variable.decided, HasSubstr(first->second + " comes first"));
  }
}

TEST(Environment, AnAddressOverridesWhereWorkerZeroIs) {
  const Entries address = {"ONESUM_ADDRESS=gate:4000"};
  for (const Entries& entries : {kRun, kTfConfig, kTorchrun, kSlurm, kOpenMpi, kMpich}) {
    const Invitation without = read(entries);
    const Invitation invitation = read(entries + address);
    EXPECT_EQ(invitation.venue, Venue(HostPort{"gate", 4000}));
    EXPECT_EQ(invitation.source, without.source);
    EXPECT_EQ(invitation.rank, without.rank);
    EXPECT_FALSE(invitation.job.empty());
    ASSERT_NE(find(invitation.variables, "ONESUM_ADDRESS"), nullptr);
    EXPECT_EQ(find(invitation.variables, "ONESUM_ADDRESS")->set_by, "the user");
  }
  // What would only say where worker 0 is may then be missing.
  EXPECT_EQ(read(with(kTorchrun, "MASTER_ADDR", nullptr) + address).size, 4);
  EXPECT_EQ(read(with(kMpich, "PMI_FD", nullptr) + address).size, 2);
  EXPECT_EQ(read(with(kOpenMpi, "PMIX_NAMESPACE", nullptr) + address).job, "gate:4000");
  const Invitation alone = read(address);
  EXPECT_EQ(alone.venue, Venue(Nowhere{}));
  EXPECT_NE(find(alone.passed_over, "ONESUM_ADDRESS"), nullptr);
}

TEST(Environment, SettingsAreNotedAndSecretsHidden) {
  const Invitation invitation =
      read(kRun + Entries{"ONESUM_SECRET=xyzzy", "ONESUM_TRANSPORT=shm", "ONESUM_MACHINE=m"});
  ASSERT_NE(find(invitation.variables, "ONESUM_SECRET"), nullptr);
  EXPECT_NE(find(invitation.variables, "ONESUM_TRANSPORT"), nullptr);
  EXPECT_NE(find(invitation.variables, "ONESUM_MACHINE"), nullptr);
  for (const Variable& variable : invitation.variables) EXPECT_THAT(variable.value, Not(HasSubstr("xyzzy")));
  expect_invalid([] { read(kRun + Entries{"ONESUM_ADRESS=a:1"}); }, {"did you mean ONESUM_ADDRESS?"});
}

TEST(Environment, ValuesAreFitForPrinting) {
  const Invitation invitation = read(with(kTorchrun, "TORCHELASTIC_RUN_ID", "a\x1b[2J\n"));
  EXPECT_EQ(find(invitation.variables, "TORCHELASTIC_RUN_ID")->value, "\"a\\x1b[2J\\n\"");
  const Invitation local =
      read(with(with(kTorchrun, "TORCHELASTIC_RUN_ID", "a\x1b"), "LOCAL_WORLD_SIZE", "4"));
  EXPECT_THAT(std::get<LocalSocket>(local.venue).name, ::testing::MatchesRegex("onesum-1000-[0-9a-f]*"));
}

TEST(Venue, SocketsOfLongJobsAreShort) {
  const std::string job(300, 'j');
  const std::string name = local_socket(7, job).name;
  EXPECT_LE(name.size(), 100U);
  EXPECT_NE(name, local_socket(7, job + "k").name);
  EXPECT_NE(name, local_socket(8, job).name);
  EXPECT_LE(local_socket(4294967295U, job).name.size(), 100U);
}

}  // namespace
}  // namespace onesum::cluster
