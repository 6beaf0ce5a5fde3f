// Every rank of a plan in a thread of its own, over shared memory: several rounds under way at a time, tiny
// and common messages, and calls of different kinds one after the other.
#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "collective/all_reduce.h"
#include "engine/host/host_engine.h"
#include "engine/shm_meeting.h"
#include "exec/bind.h"
#include "harness.h"
#include "lending_transport.h"

namespace onesum::exec {
namespace {

using collective::Algorithm;
using engine::testing::PeersMap;
using engine::testing::ShmMeeting;

engine::ThreadedEngine& engine() {
  static const std::unique_ptr<engine::ThreadedEngine> host =
      engine::make_host_engine({.threads = 1, .pool_limit_bytes = {}});
  return *host;
}

class PatientWatch final : public Watch {
 public:
  void begin(std::uint64_t beat) noexcept override { seen_.push_back(beat); }
  bool must_end() const noexcept override { return false; }
  void look(int /*peer*/, std::uint64_t /*beat*/) override {}
  void look_at_all(std::span<const int> /*ranks*/, std::uint64_t /*beat*/) override {}
  void go_on(std::uint64_t /*beat*/) noexcept override {}
  [[noreturn]] void refuse(int peer, engine::Arrival /*arrival*/) override {
    throw std::runtime_error("a message of rank " + std::to_string(peer) + " was refused");
  }
  // The first round under way, whenever it changed.
  const std::vector<std::uint64_t>& seen() const { return seen_; }

 private:
  std::vector<std::uint64_t> seen_;
};

class Ranks {
 public:
  Ranks(int size, const engine::Limits& limits, bool lends = false) : limits_(limits) {
    ShmMeeting meeting(size, limits, PeersMap::kNothing);
    for (int rank = 0; rank < size; ++rank) transports_.push_back(meeting.join(rank));
    if (!lends) return;
    for (auto& transport : transports_) {
      auto lending = std::make_unique<LendingTransport>(std::move(transport));
      lending_.push_back(lending.get());
      transport = std::move(lending);
    }
  }

  // Messages so far that were sent from tensors or received there.
  std::size_t lent() const {
    std::size_t all = 0;
    for (const LendingTransport* transport : lending_) all += transport->lent();
    return all;
  }

  // Says how many rounds it took.
  std::size_t run(Harness& harness) {
    std::vector<std::unique_ptr<Instance>> instances;
    for (std::size_t rank = 0; rank < transports_.size(); ++rank) {
      instances.push_back(std::make_unique<Instance>(
          exec::bind(harness.plan(), harness.tables(), harness.slots(), site(rank)),
          transports_[rank].get()));
      std::vector<std::byte*>& bases = instances.back()->bases();
      for (std::size_t slot = 0; slot < harness.slots(); ++slot) bases[slot] = harness.slot(slot);
    }
    const std::size_t rounds = instances.front()->program().rounds.size();
    turns_ = instances.front()->program().turns.count;
    std::vector<std::string> failures(transports_.size());
    {
      std::vector<std::jthread> threads;
      for (std::size_t rank = 0; rank < transports_.size(); ++rank) {
        threads.emplace_back([&, rank] {
          try {
            run(*instances[rank], rank);
          } catch (const std::exception& error) {
            failures[rank] = error.what();
          }
        });
      }
    }
    for (const std::string& failure : failures) EXPECT_EQ(failure, "");
    next_beat_ += rounds;
    return rounds;
  }

  unsigned turns() const { return turns_; }  // of the last program

 private:
  Site site(std::size_t own) const {
    std::vector<engine::NearBoxes> near(transports_.size());
    for (std::size_t rank = 0; rank < transports_.size(); ++rank) {
      if (rank != own) near[rank] = transports_[own]->near_boxes(static_cast<int>(rank));
    }
    return {engine(), static_cast<int>(own), limits_, std::move(near)};
  }

  void run(Instance& instance, std::size_t rank) const {
    PatientWatch watch;
    const Crossing crossing{*transports_[rank], watch, next_beat_, 7, true};
    Executor::run(instance, std::chrono::steady_clock::now() + std::chrono::seconds(60), nullptr, &crossing);
    for (std::size_t i = 0; i < watch.seen().size(); ++i) {
      EXPECT_EQ(watch.seen()[i], next_beat_ + i) << "rounds end in their order";
    }
  }

  engine::Limits limits_;
  std::vector<std::unique_ptr<engine::Transport>> transports_;
  std::vector<const LendingTransport*> lending_;
  std::uint64_t next_beat_ = 0;
  unsigned turns_ = 0;
};

struct Copies {  // of an outbox
  unsigned phases;
  std::size_t room;
};

struct Layout {
  std::int32_t workers;
  std::int32_t devices;  // of each
};

plan::Plan all_reduce(Layout layout, Algorithm algorithm, std::uint32_t shards, bool in_place,
                      Element element) {
  collective::Topology topology;
  collective::Task task;
  for (std::int32_t device = 0; device < layout.workers * layout.devices; ++device) {
    topology.device_rank.push_back(device / layout.devices);
    task.replicas.push_back({device, element});
    task.destinations.push_back({device, in_place ? device : -1});
  }
  task.output = element;
  collective::Scheme scheme;
  scheme.inside = Algorithm::kDirect;
  scheme.across = algorithm;
  scheme.shards = shards;
  return collective::all_reduce(topology, task, scheme);
}

void run_and_expect(Ranks& ranks, const plan::Plan& plan, std::size_t elements, std::size_t at_least_rounds) {
  SCOPED_TRACE(plan.algorithm + " of " + std::to_string(elements) + " elements");
  Harness harness(plan, {{{elements}, {}, 1}}, engine());
  EXPECT_GE(ranks.run(harness), at_least_rounds);
  harness.expect_as_simulated();
}

constexpr Algorithm kAlgorithms[] = {
    Algorithm::kExchange,       Algorithm::kDirect,   Algorithm::kRing,     Algorithm::kHalvingDoubling,
    Algorithm::kShuffleDevices, Algorithm::kMachines, Algorithm::kDoubling, Algorithm::kPool};

// Each follows on the others over the same transports: who is late reads what an earlier call has sent.
TEST(Ranks, CallsOfEveryKindOneAfterTheOther) {
  for (const Layout layout : {Layout{2, 1}, Layout{2, 2}, Layout{3, 1}, Layout{4, 2}, Layout{5, 1}}) {
    for (const auto& [phases, room] : {Copies{1, 0}, Copies{2, 8192}, Copies{4, 0}, Copies{4, 20000}}) {
      SCOPED_TRACE(std::to_string(layout.workers) + " workers of " + std::to_string(layout.devices) + ", " +
                   std::to_string(phases) + " copies with room for " + std::to_string(room));
      Ranks ranks(layout.workers, {8192, 64, phases, room});
      std::uint32_t shards = 1;
      for (const std::size_t elements : {0, 1, 12, 13, 1009, 20011}) {
        const std::size_t rounds = elements > 20000 ? 2 : 1;
        for (const bool in_place : {false, true}) {
          // Partial sums of 16-bit floats are wider than these, and kept beside them.
          const Element element = in_place ? Element::kFloat32 : Element::kBFloat16;
          for (const Algorithm algorithm : kAlgorithms) {
            run_and_expect(ranks, all_reduce(layout, algorithm, shards, in_place, element), elements, rounds);
            shards = 3 - shards;
          }
        }
      }
    }
  }
}

// The same, where tensors are read late and written early.
TEST(Ranks, MessagesLieInTensors) {
  for (const Layout layout : {Layout{2, 2}, Layout{3, 1}, Layout{4, 1}}) {
    for (const unsigned phases : {1U, 4U}) {
      SCOPED_TRACE(std::to_string(layout.workers) + " workers of " + std::to_string(layout.devices) + ", " +
                   std::to_string(phases) + " copies");
      Ranks ranks(layout.workers, {16384, 64, phases, 0}, true);
      for (const std::size_t elements : {1, 4093, 20011}) {
        for (const Algorithm algorithm : kAlgorithms) {
          for (const Element element : {Element::kFloat32, Element::kBFloat16}) {
            for (const bool in_place : {false, true}) {
              const std::size_t before = ranks.lent();
              run_and_expect(ranks, all_reduce(layout, algorithm, 1, in_place, element), elements, 1);
              if (elements > 20000 && algorithm == Algorithm::kDirect) {
                EXPECT_GT(ranks.lent(), before);
              }
            }
          }
        }
      }
    }
  }
}

// The same call again and again, so that every turn in the room of the copies comes several times.
TEST(Ranks, CallsTakeTurnsInTheRoomOfACopy) {
  struct Call {
    std::size_t elements;
    unsigned turns;
  };
  for (const auto& [elements, turns] : {Call{100, 32}, Call{1000, 4}, Call{2000, 2}, Call{5000, 2}}) {
    SCOPED_TRACE(std::to_string(elements) + " elements");
    const plan::Plan plan = all_reduce({2, 1}, Algorithm::kExchange, 1, true, Element::kFloat32);
    Ranks ranks(2, {8192, 64, 2, 16384});
    for (int call = 0; call < 200; ++call) {
      Harness harness(plan, {{{elements}, {}, 1}}, engine());
      ranks.run(harness);
      harness.expect_as_simulated();
    }
    EXPECT_EQ(ranks.turns(), turns);
  }
}

}  // namespace
}  // namespace onesum::exec
