// One call as c10d sees it: a Work with a future, run by the queue of its group or way.
//
// It is done when its results are there or it has failed; the failure is a c10::DistBackendError with the
// library's message. Threads: any.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/ivalue.h>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include <onesum/options.h>

namespace onesum::bridge {

// What is to be done. `run` gets options with what is left of the timeout.
struct Call {
  const char* name = "";  // "all_reduce"
  c10d::OpType type = c10d::OpType::UNKNOWN;
  std::vector<at::Tensor> inputs{};   // for profilers
  std::vector<at::Tensor> outputs{};  // the result of the future
  std::chrono::milliseconds timeout{0};
  bool is_async = true;
  std::function<void(const CommunicationOptions& options)> run{};
};

class CallWork : public c10d::Work {
 public:
  // Told about every call when it has ended, before those who wait for it: whether it succeeded.
  using Observer = std::function<void(const CallWork& work, bool succeeded)>;

  CallWork(Call call, int rank, std::uint64_t sequence_number, std::string group, Observer observer);

  // By the queue, once.
  void run() noexcept;

  bool wait(std::chrono::milliseconds timeout) override;
  std::vector<at::Tensor> result() override;
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override { return future_; }
  c10::intrusive_ptr<c10::ivalue::Future> getFutureResult() override { return outcome_; }
  void synchronize() override {}
  void abort() override;
  float getDuration() const override { return milliseconds_; }
  std::uint64_t getSequencenumber() const override { return sequence_number_; }
  std::chrono::milliseconds getTimeout() const override { return timeout_; }
  std::uint64_t getCompletionKey() const override { return key_; }

 private:
  void end(const std::exception_ptr& error) noexcept;

  using Clock = std::chrono::steady_clock;

  Call call_;
  const char* const name_;
  const std::chrono::milliseconds timeout_;
  const Clock::time_point entry_ = Clock::now();
  const std::uint64_t sequence_number_;
  const std::uint64_t key_;
  const std::string group_;
  Observer observer_;
  float milliseconds_ = 0;
  std::vector<at::Tensor> outputs_;
  const c10::intrusive_ptr<c10::ivalue::Future> future_;
  const c10::intrusive_ptr<c10::ivalue::Future> outcome_;
};

// Several works as one, which is done when all are, and fails as the first of them that failed.
c10::intrusive_ptr<c10d::Work> all_of(std::vector<c10::intrusive_ptr<CallWork>> works, int rank);

}  // namespace onesum::bridge
