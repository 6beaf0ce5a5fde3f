#include "work.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <utility>

#include <ATen/core/grad_mode.h>
#include <c10/util/Exception.h>

#include <onesum/error.h>

namespace onesum::bridge {
namespace {

std::uint64_t next_key() {
  // Only told apart: no order with anything else.
  static std::atomic<std::uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

std::exception_ptr dist_error(const std::string& message) {
  return std::make_exception_ptr(
      c10::DistBackendError(c10::SourceLocation{__func__, __FILE__, __LINE__}, message));
}

// The library's errors as what c10d's users expect, others as they are.
std::exception_ptr as_torch_sees_it() {
  try {
    throw;
  } catch (const Error& error) {
    return dist_error(error.what());
  } catch (...) {
    return std::current_exception();
  }
}

std::string profiling_title(const char* name) { return std::string("onesum:") + name; }

}  // namespace

CallWork::CallWork(Call call, int rank, std::uint64_t sequence_number, std::string group, Observer observer)
    : Work(rank, call.type, profiling_title(call.name).c_str(), call.inputs),
      call_(std::move(call)),
      name_(call_.name),
      timeout_(call_.timeout),
      sequence_number_(sequence_number),
      key_(next_key()),
      group_(std::move(group)),
      observer_(std::move(observer)),
      outputs_(call_.outputs),
      future_(c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()))),
      outcome_(c10::make_intrusive<c10::ivalue::Future>(c10::IntType::get())) {}

void CallWork::run() noexcept {
  const Clock::time_point start = Clock::now();
  std::exception_ptr error;
  try {
    const at::NoGradGuard no_grad;
    const at::AutoDispatchBelowADInplaceOrView plain;
    CommunicationOptions options;
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(entry_ + timeout_ - start);
    options.timeout = std::max(left, std::chrono::milliseconds(1));
    call_.run(options);
  } catch (...) {
    error = as_torch_sees_it();
  }
  milliseconds_ = std::chrono::duration<float, std::milli>(Clock::now() - start).count();
  end(error);
}

void CallWork::end(const std::exception_ptr& error) noexcept {
  call_ = {};  // lets go of the tensors before anyone hears that they are free
  const Observer observer = std::move(observer_);
  if (observer) observer(*this, error == nullptr);
  finish(error);
  if (error) {
    future_->setErrorIfNeeded(error);
    outcome_->markCompleted(c10::IValue(static_cast<std::int64_t>(c10d::WorkResult::COMM_ERROR)));
  } else {
    future_->markCompleted(c10::IValue(outputs_));
    outcome_->markCompleted(c10::IValue(static_cast<std::int64_t>(c10d::WorkResult::SUCCESS)));
  }
}

bool CallWork::wait(std::chrono::milliseconds timeout) {
  std::unique_lock lock(mutex_);
  const auto is_done = [this] { return completed_; };
  if (timeout <= kNoTimeout) {
    cv_.wait(lock, is_done);
  } else if (!cv_.wait_for(lock, timeout, is_done)) {
    std::rethrow_exception(dist_error(c10::str(
        name_, " (number ", sequence_number_, " of group \"", group_, "\", rank ", rank_, ") was not done ",
        timeout.count(), " ms after it was waited for; it goes on until its own timeout of ",
        timeout_.count(), " ms")));
  }
  if (exception_) std::rethrow_exception(exception_);
  return true;
}

std::vector<at::Tensor> CallWork::result() {
  wait(kNoTimeout);
  return outputs_;
}

void CallWork::abort() {
  TORCH_CHECK(false, "onesum: one call cannot be ended without the others of its group; abort the group");
}

namespace {

class ManyWorks : public c10d::Work {
 public:
  ManyWorks(std::vector<c10::intrusive_ptr<CallWork>> works, int rank)
      : Work(rank, c10d::OpType::COALESCED),
        works_(std::move(works)),
        future_(c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()))) {
    auto left = std::make_shared<std::atomic<std::size_t>>(works_.size());
    if (works_.empty()) future_->markCompleted(c10::IValue(std::vector<at::Tensor>()));
    for (const auto& work : works_) {
      work->getFuture()->addCallback([left, future = future_](c10::ivalue::Future& its) {
        if (its.hasError()) future->setErrorIfNeeded(its.exception_ptr());
        // The last one sees all that the others did.
        if (left->fetch_sub(1, std::memory_order_acq_rel) != 1 || future->completed()) return;
        future->markCompleted(c10::IValue(std::vector<at::Tensor>()));
      });
    }
  }

  bool isCompleted() override {
    return std::all_of(works_.begin(), works_.end(), [](const auto& work) { return work->isCompleted(); });
  }
  bool isSuccess() const override {
    return std::all_of(works_.begin(), works_.end(), [](const auto& work) { return work->isSuccess(); });
  }
  bool wait(std::chrono::milliseconds timeout) override {
    for (const auto& work : works_) work->wait(timeout);
    return true;
  }
  std::vector<at::Tensor> result() override {
    std::vector<at::Tensor> results;
    for (const auto& work : works_) {
      for (const at::Tensor& tensor : work->result()) results.push_back(tensor);
    }
    return results;
  }
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override { return future_; }

 private:
  const std::vector<c10::intrusive_ptr<CallWork>> works_;
  const c10::intrusive_ptr<c10::ivalue::Future> future_;
};

}  // namespace

c10::intrusive_ptr<c10d::Work> all_of(std::vector<c10::intrusive_ptr<CallWork>> works, int rank) {
  return c10::make_intrusive<ManyWorks>(std::move(works), rank);
}

}  // namespace onesum::bridge
