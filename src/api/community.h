// Everybody this process has met, and the groups that can be formed of them.
//
// A group of workers has an epoch and a transport of its own; Session is what a Cluster does its calls with.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <onesum/device.h>

#include "api/session.h"
#include "base/clock.h"
#include "base/config.h"
#include "base/worker_report.h"
#include "cluster/epoch.h"
#include "cluster/links.h"
#include "plan/cost_constants.h"

namespace onesum::api {

// What holds for every group. By seat: the rank when all met.
struct Community {
  std::shared_ptr<cluster::Links> links;
  std::vector<Device> workers;                    // by seat
  std::vector<std::string> machines;              // by seat; empty: not known
  std::vector<std::vector<std::uint32_t>> cores;  // by seat: those it may use
  plan::CostConstants constants;                  // worker 0's
  TransportChoice transport = TransportChoice::kAuto;
  bool checksums = false;  // of what goes over a network
  std::size_t outbox_bytes = 0;
  std::chrono::milliseconds progress_timeout{};
  std::chrono::milliseconds join_timeout{};
  std::optional<ReportTarget> report{};
  std::string faults{};  // on purpose (engine/faulty/faults.h): of the first group and what is left of it
};

// All of them.
std::unique_ptr<Session> open_first_session(const std::shared_ptr<const Community>& community,
                                            Clock::time_point deadline);

// Those who are left of a session, or all of it if nobody has failed (Cluster::shrink).
std::unique_ptr<Session> shrink(Session& session, Clock::time_point deadline);

// All of a session once more, and some of it; calls that all of its workers make. `ranks`: those of the new
// group, this one among them; the first is its rank 0.
std::unique_ptr<Session> duplicate(Session& session, Clock::time_point deadline);
std::unique_ptr<Session> split(Session& session, std::span<const int> ranks, Clock::time_point deadline);

// Some of a session, without the others: no call on it. Its members give it the same name and number.
struct GroupName {
  std::string text;
  std::uint64_t number = 0;
};
std::unique_ptr<Session> group(Session& session, std::span<const int> ranks, const GroupName& name,
                               Clock::time_point deadline);

}  // namespace onesum::api
