// What a CrossDeviceOps object is made of. Calls take their turn on the cluster's sequence first; everything
// below that is not const is used inside a turn only.
#pragma once

#include <atomic>
#include <memory>
#include <unordered_map>

#include <onesum/cross_device_ops.h>

#include "api/bound_call.h"
#include "api/call_key.h"
#include "api/call_record.h"
#include "api/cluster_state.h"
#include "api/pairs.h"
#include "base/clock.h"
#include "planner/planner.h"

namespace onesum {

struct CrossDeviceOps::Impl {
  Impl(const planner::Policy& policy, AccumulationFn fn, const Cluster& on);

  // The whole of a synchronous call: takes its turn and makes the call. Returns results of its own unless the
  // pairs have some.
  std::vector<Mirrored> call(const api::CallTraits& traits, const api::Pairs& pairs,
                             const CommunicationOptions& options);

  // The same when it is this thread's turn already: finds or makes the bound call and runs it.
  std::vector<Mirrored> call_in_turn(const api::CallTraits& traits, const api::Pairs& pairs,
                                     const CommunicationOptions& options, Clock::time_point start);

  // A call's turn. With other processes, a call that is given up before it ends the session: what is lost is
  // its place among all calls.
  cluster::Sequence::Turn take_turn(const CommunicationOptions& options, Clock::time_point start);
  void refuse_if_late(const CommunicationOptions& options, Clock::time_point start);

  // Refuses a call before its turn. Other processes are told, in its turn.
  [[noreturn]] void refuse(const Error& error, const CommunicationOptions& options);
  [[noreturn]] void refuse_in_turn(const Error& error, const CommunicationOptions& options,
                                   Clock::time_point start);

  // Throws what is wrong with a collective by itself.
  void check(const Collective& call, const CommunicationOptions& options) const;

  // What a call would do; with other processes, if they all called alike.
  planner::Planned plan_call(const api::CallTraits& traits, const api::Pairs& pairs,
                             const CommunicationOptions& options);

  // Binds without the cache, for a call that is kept by the caller.
  std::unique_ptr<api::BoundCall> bind(const api::CallTraits& traits, const api::Pairs& pairs,
                                       const CommunicationOptions& options);

  // The same together with other processes: a call that all make, in this thread's turn. Takes the addresses
  // of the pairs, too. Null where a value needs to be looked at in every run: where components are made dense
  // or rows merged, be it of other processes.
  std::unique_ptr<api::BoundCall> bind_with_others(const api::CallTraits& traits, const api::Pairs& pairs,
                                                   const CommunicationOptions& options,
                                                   Clock::time_point start);

  // Runs a bound call whose addresses are set, in this thread's turn.
  void run(api::BoundCall& bound, const api::Pairs& pairs, const CommunicationOptions& options,
           Clock::time_point start);

  CallReport report() const { return record_.report(); }

  const Cluster cluster;
  const AccumulationFn accumulation_fn;
  planner::Planner planner;

 private:
  struct Entry {
    std::unique_ptr<api::BoundCall> bound;
    std::uint64_t last_used = 0;
  };
  api::BoundCall& cached(const api::CallTraits& traits, const api::Pairs& pairs,
                         const CommunicationOptions& options, const Fingerprint& fingerprint);
  void forget_oldest();
  void give_up(const Error& error);
  // Says once that NCCL, asked for by the policy, does not serve the devices of a call.
  void warn_of_nccl(planner::CallKind kind, const planner::Planned& planned);

  // The same for pairs none of which mixes dense and sparse components.
  std::vector<Mirrored> call_unmixed(const api::CallTraits& traits, const api::Pairs& pairs,
                                     const CommunicationOptions& options, const api::CallKey& key,
                                     Clock::time_point start);
  planner::Planned plan_unmixed(const api::CallTraits& traits, const api::Pairs& pairs,
                                const CommunicationOptions& options, bool merges_rows);

  // The same together with other processes (calls_with_others.cc).
  std::vector<Mirrored> call_with_others(const api::CallTraits& traits, const api::Pairs& pairs,
                                         const CommunicationOptions& options, Clock::time_point start);
  std::vector<Mirrored> call_as_told(api::Session::Call& call, const api::CallTraits& traits,
                                     const api::Pairs& pairs, const CommunicationOptions& options,
                                     const api::CallKey& key, Clock::time_point start);
  void run_with_others(api::BoundCall& bound, const api::Pairs& pairs, const CommunicationOptions& options,
                       Clock::time_point start);
  planner::Planned plan_with_others(const api::CallTraits& traits, const api::Pairs& pairs,
                                    const CommunicationOptions& options);
  api::BoundCall& bound_with_others(const api::CallTraits& traits, api::JointCall joint,
                                    const Fingerprint& kept_as, api::Session::Call& call);
  std::unique_ptr<api::BoundCall> bind_joint(const api::CallTraits& traits, api::JointCall joint,
                                             Clock::time_point deadline);
  exec::Waiting execute_with_others(api::Session::Call& call, api::BoundCall& bound, const api::Pairs& pairs);
  planner::Request own_request(const api::CallTraits& traits, const api::Pairs& pairs,
                               const CommunicationOptions& options) const;

  api::BoundCall& keep(const Fingerprint& fingerprint, std::unique_ptr<api::BoundCall> bound);

  // The halves of run().
  void execute(api::BoundCall& bound, const api::Pairs& pairs, const CommunicationOptions& options,
               Clock::time_point start);
  void record(const api::BoundCall& bound, Clock::time_point start, const exec::Waiting& waiting = {});

  std::unordered_map<Fingerprint, Entry, FingerprintHash> cache_;
  std::uint64_t uses_ = 0;

  // Relaxed: it only counts to one.
  std::atomic_flag warned_of_nccl_;

  // The last call. Written inside a turn, read at any time.
  api::CallRecord record_;
};

namespace api {

// Half an hour, unless the call says otherwise.
Clock::time_point deadline_of(const CommunicationOptions& options, Clock::time_point start);

Pairs pairs_of(const std::span<const ValueDestination>& pairs);  // refers to the argument

}  // namespace api
}  // namespace onesum
