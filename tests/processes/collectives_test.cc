// Collectives and messages among worker processes.
#include <chrono>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <onesum/onesum.h>

#include "support/collective_reference.h"
#include "workers.h"

namespace onesum::testing {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

constexpr CollectiveKind kKinds[] = {CollectiveKind::kReduce,        CollectiveKind::kBroadcast,
                                     CollectiveKind::kReduceScatter, CollectiveKind::kAllGather,
                                     CollectiveKind::kScatter,       CollectiveKind::kAllToAll};

Tensor tensor_of(DType dtype, const Bytes& bytes) {
  Tensor tensor =
      Tensor::empty(dtype, Shape{static_cast<std::int64_t>(bytes.size() / size_of(dtype))}, "CPU:0");
  if (!bytes.empty()) std::memcpy(tensor.memory(), bytes.data(), bytes.size());
  return tensor;
}

Tensor blank(DType dtype, std::size_t elements) {
  Tensor tensor = Tensor::empty(dtype, Shape{static_cast<std::int64_t>(elements)}, "CPU:0");
  if (elements > 0) std::memset(tensor.memory(), 0xa5, tensor.bytes());
  return tensor;
}

Bytes bytes_of(const Tensor& tensor) {
  const auto* const memory = static_cast<const std::byte*>(tensor.memory());
  return {memory, memory + tensor.bytes()};
}

// This worker's side of a case.
struct Part {
  CollectiveCase its;
  std::size_t rank;
  PerReplica value;
  Tensor result;

  Part(const CollectiveCase& what, int own, std::uint64_t seed)
      : its(what), rank(static_cast<std::size_t>(own)), result(blank(its.dtype, its.results[rank])) {
    const bool has_root = its.kind == CollectiveKind::kBroadcast || its.kind == CollectiveKind::kScatter;
    if (!has_root || own == its.root) value = tensor_of(its.dtype, replica_bytes(its, rank, seed));
  }

  Collective call() const {
    Collective call{its.kind, its.op, its.root, {value}, {PerReplica(result)}};
    if (!its.splits.empty()) call.splits = {its.splits[rank]};
    return call;
  }

  // Empty if it is good.
  std::string fault(std::uint64_t seed) const {
    if (bytes_of(result) == expected_result(its, rank, seed)) return "";
    return fmt::format("worker {}: {} of {} elements is wrong\n", rank, to_string(its.kind),
                       its.replicas[rank]);
  }
};

void expect_no_faults(const std::vector<WorkerEnd>& ends) {
  for (const WorkerEnd& end : ends) EXPECT_EQ(end.text, "");
}

class CollectivesOfProcesses : public ::testing::TestWithParam<const char*> {
 protected:
  Environment environment() const { return {{"ONESUM_TRANSPORT", GetParam()}}; }
};

TEST_P(CollectivesOfProcesses, GiveWhatTheyShould) {
  for (const int workers : {1, 2, 3, 4}) {
    const auto body = [&](int rank) {
      const Cluster cluster = Cluster::from_environment();
      ReductionToOneDevice ops({}, {}, cluster);
      std::string faults;
      std::uint64_t seed = 0;
      for (const CollectiveKind kind : kKinds) {
        for (const std::size_t elements : {0U, 1U, 13U, 3001U, 120011U}) {
          for (const char* how : {"even", "uneven", "promised", "promised"}) {
            const bool uneven = how == std::string("uneven");
            if (elements > 100000 && !uneven) continue;  // several rounds: once is enough
            CollectiveCase its =
                collective_case(kind, DType::kFloat32, static_cast<std::size_t>(workers), elements, uneven);
            its.root = workers - 1;
            const Part part(its, rank, ++seed);
            Collective call = part.call();
            call.has_equal_parts = how == std::string("promised");
            ops.run(call);
            faults += part.fault(seed);
          }
        }
      }
      return faults;
    };
    expect_no_faults(run_workers(workers, body, environment()));
  }
}

TEST_P(CollectivesOfProcesses, RunAgainPreparedStartedAndTogether) {
  const auto body = [&](int rank) {
    const Cluster cluster = Cluster::from_environment();
    ReductionToOneDevice ops({}, {}, cluster);
    std::string faults;
    for (const CollectiveKind kind : kKinds) {
      const CollectiveCase its = collective_case(kind, DType::kBFloat16, 3, 700);
      const Part part(its, rank, 5);
      PreparedReduce prepared = ops.prepare(part.call());
      for (int round = 0; round < 3; ++round) {
        std::memset(part.result.memory(), 0, part.result.bytes());
        prepared.run();
        faults += part.fault(5);
      }
      std::vector<Part> parts;
      std::vector<Work> works;
      for (std::uint64_t i = 0; i < 4; ++i) {
        works.push_back(ops.start(parts.emplace_back(its, rank, i).call()));
      }
      for (std::uint64_t i = 0; i < 4; ++i) {
        works[i].wait();
        faults += parts[i].fault(i);
      }
      Collective all{kind, ReduceOp::kSum, 0, {}, {}};
      parts.clear();
      for (std::uint64_t i = 0; i < 4; ++i) {
        parts.emplace_back(collective_case(kind, DType::kInt32, 3, 100 + 1000 * i), rank, i);
        all.values.push_back(parts.back().value);
        all.results.emplace_back(parts.back().result);
      }
      ops.run(all);
      for (std::uint64_t i = 0; i < 4; ++i) faults += parts[i].fault(i);
    }
    return faults;
  };
  expect_no_faults(run_workers(3, body, environment()));
}

// Sizes that change on some workers only: others make a call that looks the same to them.
TEST_P(CollectivesOfProcesses, SizesMayChangeElsewhere) {
  const auto body = [&](int rank) {
    const Cluster cluster = Cluster::from_environment();
    ReductionToOneDevice ops({}, {}, cluster);
    std::string faults;
    for (std::uint64_t round = 0; round < 6; ++round) {
      CollectiveCase its = collective_case(CollectiveKind::kAllToAll, DType::kFloat32, 3, 10, true);
      if (round % 2 == 1) {  // worker 1 sends more to itself and to worker 2, worker 0 sees nothing of it
        its.splits[1] = {its.splits[1][0], 50, 60};
        its.replicas[1] = its.splits[1][0] + 110;
        for (std::size_t d = 0; d < 3; ++d) {
          its.results[d] = its.splits[0][d] + its.splits[1][d] + its.splits[2][d];
        }
      }
      const Part exchanged(its, rank, round);
      ops.run(exchanged.call());
      faults += exchanged.fault(round);
      CollectiveCase sums = collective_case(CollectiveKind::kReduceScatter, DType::kFloat32, 3, 10, true);
      if (round % 2 == 1) std::swap(sums.results[1], sums.results[2]);
      const Part summed(sums, rank, round);
      ops.run(summed.call());
      faults += summed.fault(round);
    }
    return faults;
  };
  expect_no_faults(run_workers(3, body, environment()));
}

TEST_P(CollectivesOfProcesses, PartsMayLieWhereTheyBelong) {
  const auto body = [&](int rank) {
    const Cluster cluster = Cluster::from_environment();
    ReductionToOneDevice ops({}, {}, cluster);
    std::string faults;
    for (const bool uneven : {false, true, false}) {
      const auto slice = [&](const Tensor& whole, const std::vector<std::size_t>& parts) {
        std::size_t first = 0;
        for (int r = 0; r < rank; ++r) first += parts[static_cast<std::size_t>(r)];
        return Tensor::borrow(static_cast<float*>(whole.memory()) + first, DType::kFloat32,
                              Shape{static_cast<std::int64_t>(parts[static_cast<std::size_t>(rank)])},
                              "CPU:0");
      };
      Part sums(collective_case(CollectiveKind::kReduceScatter, DType::kFloat32, 3, 30000, uneven), rank, 1);
      sums.result = slice(sums.value.tensor(), sums.its.results);
      ops.run(sums.call());
      faults += sums.fault(1);
      Part whole(collective_case(CollectiveKind::kAllGather, DType::kFloat32, 3, 30000, uneven), rank, 1);
      const Tensor part = slice(whole.result, whole.its.replicas);
      std::memcpy(part.memory(), whole.value.tensor().memory(), part.bytes());
      whole.value = part;
      ops.run(whole.call());
      faults += whole.fault(1);
      Part root(collective_case(CollectiveKind::kBroadcast, DType::kFloat32, 3, 100), rank, 1);
      if (rank == 0) root.result = root.value.tensor();
      ops.run(root.call());
      faults += root.fault(1);
    }
    return faults;
  };
  expect_no_faults(run_workers(3, body, environment()));
}

// To the root only, and from workers that have nothing to bring.
TEST_P(CollectivesOfProcesses, SomeBringNothingOrGetNothing) {
  const auto body = [&](int rank) {
    const Cluster cluster = Cluster::from_environment();
    ReductionToOneDevice ops({}, {}, cluster);
    std::string faults;
    for (const CollectiveKind kind : {CollectiveKind::kReduce, CollectiveKind::kAllGather}) {
      const Part part(collective_case(kind, DType::kFloat32, 3, 5000), rank, 3);
      Collective call = part.call();
      if (rank != 1) call.results = {PerReplica()};
      ops.run(call);
      if (rank == 1) faults += part.fault(3);
    }
    CollectiveCase two = collective_case(CollectiveKind::kAllGather, DType::kFloat32, 2, 40);
    Collective call = Collective::all_gather({PerReplica()}, {PerReplica(blank(DType::kFloat32, 80))});
    if (rank < 2)
      call.values = {
          PerReplica(tensor_of(DType::kFloat32, replica_bytes(two, static_cast<std::size_t>(rank))))};
    ops.run(call);
    if (bytes_of(call.results.front().tensor()) != expected_result(two, 0)) faults += "of two\n";
    return faults;
  };
  expect_no_faults(run_workers(3, body, environment()));
}

// A part that lies one byte after the beginning of the whole, after a call with the whole elsewhere.
TEST_P(CollectivesOfProcesses, PartsOfOneByteMayLieWhereTheyBelong) {
  const auto body = [&](int rank) {
    const Cluster cluster = Cluster::from_environment();
    ReductionToOneDevice ops({}, {}, cluster);
    std::string faults;
    for (const bool in_place : {false, true}) {
      Part whole(collective_case(CollectiveKind::kAllGather, DType::kUInt8, 2, 1), rank, 1);
      if (in_place) {
        auto* const memory = static_cast<std::byte*>(whole.result.memory()) + rank;
        *memory = *static_cast<const std::byte*>(whole.value.tensor().memory());
        whole.value = Tensor::borrow(memory, DType::kUInt8, Shape{1}, "CPU:0");
      }
      Collective call = whole.call();
      call.has_equal_parts = true;
      ops.run(call);
      faults += whole.fault(1);
    }
    return faults;
  };
  expect_no_faults(run_workers(2, body, environment()));
}

// To the receiver these look like calls to all, and to the others like those to another receiver.
TEST_P(CollectivesOfProcesses, ReceiversTakeTurns) {
  const auto body = [&](int rank) {
    const Cluster cluster = Cluster::from_environment();
    ReductionToOneDevice ops({}, {}, cluster);
    std::string faults;
    for (const CollectiveKind kind :
         {CollectiveKind::kReduce, CollectiveKind::kBroadcast, CollectiveKind::kAllGather}) {
      for (const int receiver : {-1, 0, 1, 2, -1, 1, 0, -1}) {
        const Part part(collective_case(kind, DType::kFloat32, 3, 50), rank, 4);
        Collective call = part.call();
        call.has_equal_parts = true;
        call.receiver = receiver;
        const bool gets = receiver == -1 || receiver == rank;
        if (!gets) call.results = {PerReplica()};
        ops.run(call);
        if (gets) faults += part.fault(4);
      }
    }
    return faults;
  };
  expect_no_faults(run_workers(3, body, environment()));
}

TEST_P(CollectivesOfProcesses, WrongCallsAreErrorsOfAll) {
  const auto body = [&](int rank) -> std::string {
    const Cluster cluster = Cluster::from_environment();
    ReductionToOneDevice ops({}, {}, cluster);
    Part part(collective_case(CollectiveKind::kAllGather, DType::kFloat32, 2, 100), rank, 1);
    if (rank == 1) part.value = blank(DType::kFloat32, 99);
    try {
      ops.run(part.call());
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  for (const WorkerEnd& end : run_workers(2, body, environment())) {
    EXPECT_THAT(end.text, AllOf(HasSubstr("200 elements"), HasSubstr("expected 199")));
  }
  const auto root = [&](int rank) -> std::string {
    const Cluster cluster = Cluster::from_environment();
    ReductionToOneDevice ops({}, {}, cluster);
    Part part(collective_case(CollectiveKind::kScatter, DType::kFloat32, 2, 100), rank, 1);
    Collective call = part.call();
    call.root = rank == 0 ? 0 : 2;
    try {
      ops.start(call).wait();
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  for (const WorkerEnd& end : run_workers(2, root, environment())) {
    EXPECT_THAT(end.text, AllOf(HasSubstr("scatter: root 2"), HasSubstr("2 worker")));
  }
}

TEST_P(CollectivesOfProcesses, GroupsAreMadeByTheirMembersAlone) {
  const auto body = [&](int rank) {
    Cluster cluster = Cluster::from_environment();
    std::string faults;
    for (int round = 0; round < 2; ++round) {  // the same name again is another group
      if (rank == 3) break;                    // takes part in nothing
      const std::vector<int> ranks{2, 0, 1};
      Cluster three = cluster.group(ranks, "three");
      const int own = three.rank();
      if (own != (rank + 1) % 3 || three.size() != 3) faults += "rank\n";
      ReductionToOneDevice ops({}, {}, three);
      const Part part(collective_case(CollectiveKind::kAllGather, DType::kFloat32, 3, 100), own, 9);
      ops.run(part.call());
      faults += part.fault(9);
    }
    cluster.barrier();
    return faults;
  };
  expect_no_faults(run_workers(4, body, environment()));
}

TEST_P(CollectivesOfProcesses, MessagesBothWaysWithTags) {
  const auto body = [&](int rank) {
    const Cluster cluster = Cluster::from_environment();
    PointToPoint messages(cluster);
    std::string faults;
    const auto text = [](int from, int to, int tag, std::size_t elements) {
      const CollectiveCase its = collective_case(CollectiveKind::kAllGather, DType::kFloat64, 1, elements);
      return replica_bytes(its, 0, static_cast<std::uint64_t>(from * 100 + to * 10 + tag));
    };
    std::vector<Work> works;
    struct Expected {
      Tensor tensor;
      Bytes bytes;
    };
    std::vector<Expected> expected;
    for (const std::size_t elements : {1U, 0U, 77U, 100003U}) {
      for (int tag = 0; tag < 2; ++tag) {
        for (int other = 0; other < 3; ++other) {
          if (other == rank) continue;
          works.push_back(
              messages.start_send(tensor_of(DType::kFloat64, text(rank, other, tag, elements)), other, tag));
          expected.push_back({blank(DType::kFloat64, elements), text(other, rank, tag, elements)});
          works.push_back(messages.start_recv(expected.back().tensor, other, tag));
        }
      }
    }
    for (Work& work : works) work.wait();
    for (const Expected& its : expected) {
      if (bytes_of(its.tensor) != its.bytes) faults += fmt::format("worker {}: a message is wrong\n", rank);
    }
    // Without a Work, around in a circle; shapes are each side's own.
    Tensor token = tensor_of(DType::kInt32, Bytes(24, std::byte(7)));
    const Tensor square = Tensor::borrow(token.memory(), DType::kInt32, Shape{2, 3}, "CPU:0");
    if (rank == 0) messages.send(square, 1);
    const Tensor got = blank(DType::kInt32, 6);
    messages.recv(got, (rank + 2) % 3);
    if (rank != 0) messages.send(got, (rank + 1) % 3);
    if (bytes_of(got) != Bytes(24, std::byte(7))) faults += "the token is wrong\n";
    return faults;
  };
  expect_no_faults(run_workers(3, body, environment()));
}

TEST_P(CollectivesOfProcesses, MessagesThatDoNotFitAreErrorsOfBoth) {
  const auto body = [&](int rank) -> std::string {
    const Cluster cluster = Cluster::from_environment();
    PointToPoint messages(cluster);
    try {
      if (rank == 0) {
        messages.send(blank(DType::kFloat32, 10), 1);
      } else {
        messages.recv(blank(DType::kFloat32, 11), 0);
      }
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  for (const WorkerEnd& end : run_workers(2, body, environment())) {
    EXPECT_THAT(end.text, AllOf(HasSubstr("[11]"), HasSubstr("[10]")));
  }
}

TEST_P(CollectivesOfProcesses, NobodyWaitsForAMessageOfTheDead) {
  const auto body = [&](int rank) -> std::string {
    const Cluster cluster = Cluster::from_environment();
    PointToPoint messages(cluster);
    if (rank == 1) {
      messages.recv(blank(DType::kFloat32, 10), 0);
      _exit(0);
    }
    try {
      if (rank == 0) messages.send(blank(DType::kFloat32, 10), 1);
      messages.recv(blank(DType::kFloat32, 10), 1);
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  const std::vector<WorkerEnd> ends = run_workers(3, body, environment());
  EXPECT_THAT(ends[0].text, HasSubstr("task:1"));
  EXPECT_THAT(ends[2].text, HasSubstr("task:1"));
}

TEST_P(CollectivesOfProcesses, AMessageThatNeverComesIsALateOne) {
  const auto body = [&](int rank) -> std::string {
    Cluster cluster = Cluster::from_environment();
    PointToPoint messages(cluster);
    std::string text;
    if (rank == 0) {
      CommunicationOptions options;
      options.timeout = std::chrono::milliseconds(300);
      try {
        messages.recv(blank(DType::kFloat32, 10), 1, 0, options);
      } catch (const Error& error) {
        text = fmt::format("{}: {}", to_string(error.code()), error.what());
      }
    }
    cluster.barrier();
    return text;
  };
  const std::vector<WorkerEnd> ends = run_workers(2, body, environment());
  EXPECT_THAT(ends[0].text, AllOf(HasSubstr("deadline_exceeded"), HasSubstr("task:1")));
  EXPECT_EQ(ends[1].text, "");
}

TEST_P(CollectivesOfProcesses, ClosingTheClusterEndsMessages) {
  const auto body = [&](int rank) -> std::string {
    Cluster cluster = Cluster::from_environment();
    PointToPoint messages(cluster);
    if (rank == 1) {
      messages.send(blank(DType::kFloat32, 10), 0, 1);
      try {
        cluster.barrier();
      } catch (const Error& error) {
        return error.what();
      }
      return "no error";
    }
    messages.recv(blank(DType::kFloat32, 10), 1, 1);
    Work on_used_way = messages.start_recv(blank(DType::kFloat32, 10), 1, 1);
    Work on_new_way = messages.start_recv(blank(DType::kFloat32, 10), 1, 2);
    on_new_way.wait_for(std::chrono::milliseconds(50));
    cluster.close();
    std::string text;
    for (Work* const work : {&on_used_way, &on_new_way}) {
      try {
        work->wait();
      } catch (const Error& error) {
        text += fmt::format("{}: {}\n", to_string(error.code()), error.what());
      }
    }
    return text;
  };
  const std::vector<WorkerEnd> ends = run_workers(2, body, environment());
  EXPECT_THAT(ends[0].text, ContainsRegex("aborted: .*closed the cluster.*\naborted: .*closed the cluster"));
  EXPECT_THAT(ends[1].text, HasSubstr("closed the cluster"));
}

TEST_P(CollectivesOfProcesses, WhoWaitsForAGroupCanBeInterrupted) {
  const auto body = [&](int rank) -> std::string {
    Cluster cluster = Cluster::from_environment();
    std::string text;
    if (rank == 0) {
      const InterruptCheck check([] { throw std::runtime_error("enough"); });
      try {
        cluster.group(std::vector{0, 1}, "both");
      } catch (const std::runtime_error& error) {
        text = error.what();
      }
    }
    cluster.barrier();
    return text;
  };
  EXPECT_EQ(run_workers(2, body, environment())[0].text, "enough");
}

INSTANTIATE_TEST_SUITE_P(Transports, CollectivesOfProcesses, ::testing::Values("shm", "tcp"),
                         [](const auto& its) { return std::string(its.param); });

}  // namespace
}  // namespace onesum::testing
