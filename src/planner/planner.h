// From a request to a plan: validate, pack, choose, build, compose, prove.
//
// A Planner belongs to one object of a public class. It keeps the plans it made, by a fingerprint of
// everything that shapes them; sizes that are known only at run time (rows of sparse values) and addresses
// are not in it. Threads: any.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/hash.h"
#include "plan/compose.h"
#include "plan/cost.h"
#include "plan/pack_table.h"
#include "plan/plan.h"
#include "planner/pack.h"
#include "planner/policy.h"
#include "planner/request.h"
#include "planner/select.h"

namespace onesum::planner {

// What one pack of a call became, and why.
struct Choice {
  std::string algorithm;
  std::string reason;
  bool canonical = true;  // whether it adds in the canonical order
  bool native = false;    // whether a vendor's library runs it, or a level of it
};

struct Planned {
  std::shared_ptr<const plan::Plan> plan;
  std::vector<plan::PackTable> tables;                 // of each pack of the plan
  std::vector<std::vector<std::size_t>> pack_streams;  // of each pack, its streams
  std::vector<Choice> choices;                         // of each pack
  std::vector<Stream> streams;
  std::vector<Device> devices;  // by their number in the plan
  std::size_t slots = 0;        // tensor slots
};

// A device of a replica that is not a GPU; null: all are.
const Device* replica_without_gpu(const Planned& planned);

class Planner {
 public:
  Planner(Policy policy, Placement placement, const plan::CostConstants& constants = {});

  const Policy& policy() const noexcept { return policy_; }
  const Placement& placement() const noexcept { return placement_; }
  const plan::CostConstants& constants() const noexcept { return constants_; }

  // Throws what is wrong with the request.
  Planned plan(const Request& request);

 private:
  // The kept one; else built of parts, each kept or built and proved, and kept itself.
  std::shared_ptr<const plan::Plan> plan_of(const std::vector<PackOfStreams>& packs,
                                            const std::vector<Selection>& selections,
                                            const collective::Topology& topology, plan::LaneUse lanes);
  std::shared_ptr<const plan::Plan> cached_plan(const Fingerprint& fingerprint) const;
  void keep(const Fingerprint& fingerprint, std::shared_ptr<const plan::Plan> plan);

  Policy policy_;
  Placement placement_;
  plan::CostConstants constants_;
  mutable std::mutex mutex_;  // of plans_
  std::unordered_map<Fingerprint, std::shared_ptr<const plan::Plan>, FingerprintHash> plans_;
};

}  // namespace onesum::planner
