#include "cluster/pmix.h"

#include <onesum/error.h>

#ifdef ONESUM_HAS_PMIX

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <limits>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include <dlfcn.h>
#include <pmix.h>

#include "base/config.h"
#include "cluster/mpi_in_process.h"

namespace onesum::cluster {
namespace {

constexpr const char* kLibrary = "libpmix.so.2";
constexpr auto kPatienceForFacts = std::chrono::seconds(30);

// The functions we call, found in the library.
struct Functions {
  decltype(&PMIx_Init) init;
  decltype(&PMIx_Finalize) finalize;
  decltype(&PMIx_Put) put;
  decltype(&PMIx_Commit) commit;
  decltype(&PMIx_Fence_nb) fence;
  decltype(&PMIx_Get_nb) get;
  decltype(&PMIx_Error_string) error_string;
};

[[noreturn]] void cannot_open(const std::string& reason) {
  throw Error(ErrorCode::kUnimplemented,
              "the workers' launcher speaks PMIx, and its library cannot be used: " + reason +
                  "; install it (Debian: libpmix2), or set ONESUM_ADDRESS to HOST:PORT of worker 0");
}

template <class F>
void find(void* library, const char* name, F& function) {
  function = reinterpret_cast<F>(::dlsym(library, name));
  if (function == nullptr) cannot_open(std::string(kLibrary) + " has no " + name);
}

// The library stays open to the end of the process: it has threads. Its plug-ins look for its symbols, so
// they are global.
Functions load() {
  void* const library = ::dlopen(kLibrary, RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) cannot_open(::dlerror());
  Functions functions;
  find(library, "PMIx_Init", functions.init);
  find(library, "PMIx_Finalize", functions.finalize);
  find(library, "PMIx_Put", functions.put);
  find(library, "PMIx_Commit", functions.commit);
  find(library, "PMIx_Fence_nb", functions.fence);
  find(library, "PMIx_Get_nb", functions.get);
  find(library, "PMIx_Error_string", functions.error_string);
  return functions;
}

// What a call that answers later answers, copied on the library's thread. Shared with the callback, which may
// come after we have given up.
class Answer {
 public:
  void set(pmix_status_t status, const pmix_value_t* value) {
    const std::lock_guard lock(mutex_);
    status_ = status;
    if (value != nullptr && status == PMIX_SUCCESS) copy(*value);
    arrived_.notify_all();
  }

  // nullopt if nothing came in time.
  std::optional<pmix_status_t> await(Clock::time_point deadline) {
    std::unique_lock lock(mutex_);
    arrived_.wait_until(lock, deadline, [this] { return status_.has_value(); });
    return status_;
  }

  // After await.
  const std::optional<std::string>& text() const noexcept { return text_; }
  const std::optional<std::uint64_t>& number() const noexcept { return number_; }

 private:
  void copy(const pmix_value_t& value) {
    if (value.type == PMIX_STRING && value.data.string != nullptr) {
      text_ = std::string(value.data.string, ::strnlen(value.data.string, kLongestNotice + 1));
    } else if (value.type == PMIX_UINT32) {
      number_ = value.data.uint32;
    } else if (value.type == PMIX_UINT16) {
      number_ = value.data.uint16;
    }
  }

  std::mutex mutex_;
  std::condition_variable arrived_;
  std::optional<pmix_status_t> status_;
  std::optional<std::string> text_;
  std::optional<std::uint64_t> number_;
};

using SharedAnswer = std::shared_ptr<Answer>;

void on_done(pmix_status_t status, void* data) {
  const std::unique_ptr<SharedAnswer> answer(static_cast<SharedAnswer*>(data));
  (*answer)->set(status, nullptr);
}

void on_value(pmix_status_t status, pmix_value_t* value, void* data) {
  const std::unique_ptr<SharedAnswer> answer(static_cast<SharedAnswer*>(data));
  (*answer)->set(status, value);
}

// A connection to the server of this machine.
class Client {
 public:
  Client() : pmix_(load()) {
    find_mpi();
    check("PMIx_Init", pmix_.init(&self_, nullptr, 0));
  }
  ~Client() { pmix_.finalize(nullptr, 0); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  void put(const std::string& key, std::string text) {
    pmix_value_t value{};
    value.type = PMIX_STRING;
    value.data.string = text.data();
    check("PMIx_Put", pmix_.put(PMIX_GLOBAL, key.c_str(), &value));
    check("PMIx_Commit", pmix_.commit());
  }

  // Returns when all workers have come; what they have put can then be had.
  void fence(Clock::time_point deadline) {
    pmix_info_t collect{};
    std::strncpy(collect.key, PMIX_COLLECT_DATA, sizeof collect.key - 1);
    collect.value.type = PMIX_BOOL;
    collect.value.data.flag = true;
    const auto answer = std::make_shared<Answer>();
    await(
        "PMIx_Fence", *answer, deadline,
        [&](void* data) { return pmix_.fence(nullptr, 0, &collect, 1, on_done, data); }, answer);
  }

  SharedAnswer get(pmix_rank_t rank, const char* key, Clock::time_point deadline) {
    pmix_proc_t of = self_;
    of.rank = rank;
    auto answer = std::make_shared<Answer>();
    await(
        key, *answer, deadline, [&](void* data) { return pmix_.get(&of, key, nullptr, 0, on_value, data); },
        answer);
    return answer;
  }

  pmix_rank_t rank() const noexcept { return self_.rank; }

 private:
  template <class Start>
  void await(const char* what, Answer& answer, Clock::time_point deadline, const Start& start,
             const SharedAnswer& shared) {
    auto data = std::make_unique<SharedAnswer>(shared);
    SharedAnswer* const given = data.release();  // the callback's, if one will come
    const pmix_status_t started = start(given);
    if (started != PMIX_SUCCESS) data.reset(given);
    if (started == PMIX_OPERATION_SUCCEEDED) return;
    check(what, started);
    const auto status = answer.await(deadline);
    if (!status) {
      throw Error(ErrorCode::kDeadlineExceeded, std::string("the PMIx server did not answer ") + what +
                                                    " in time: other workers may not have come");
    }
    check(what, *status);
  }

  void check(const char* what, pmix_status_t status) const {
    if (status == PMIX_SUCCESS) return;
    throw Error(ErrorCode::kUnavailable,
                std::string("the PMIx server refused ") + what + ": " + pmix_.error_string(status));
  }

  Functions pmix_;
  pmix_proc_t self_{};
};

// Ends with the process: a fence fails for all if a worker leaves, even to come again, while others are in
// it.
Client& client() {
  static Client client;
  return client;
}

class PmixBoard final : public AddressBoard {
 public:
  void publish(std::string_view text, Clock::time_point deadline) override {
    check_notice(text);
    client_.put(next_notice_key(), std::string(text));
    client_.fence(deadline);
  }

  std::string lookup(Clock::time_point deadline) override {
    client_.fence(deadline);
    const SharedAnswer answer = client_.get(0, next_notice_key().c_str(), deadline);
    if (!answer->text()) {
      throw Error(ErrorCode::kUnavailable,
                  "the PMIx server has something else than text as worker 0's address");
    }
    return *answer->text();
  }

 private:
  Client& client_ = client();
};

int as_count(std::uint64_t number) {
  return static_cast<int>(std::min<std::uint64_t>(number, std::numeric_limits<int>::max()));
}

std::optional<int> fact(pmix_rank_t rank, const char* key) {
  const SharedAnswer answer = client().get(rank, key, now() + kPatienceForFacts);
  if (!answer->number()) return std::nullopt;
  return as_count(*answer->number());
}

std::optional<int> optional_fact(pmix_rank_t rank, const char* key) {
  try {
    return fact(rank, key);
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace

std::unique_ptr<AddressBoard> open_pmix_board() { return std::make_unique<PmixBoard>(); }

PmixJob ask_pmix_job() {
  const auto size = fact(PMIX_RANK_WILDCARD, PMIX_JOB_SIZE);
  if (!size || *size < 1 || *size > kMostWorkers) {
    throw Error(ErrorCode::kUnavailable,
                "the PMIx server does not say how many workers the job has, or not from 1 to " +
                    std::to_string(kMostWorkers));
  }
  PmixJob job;
  job.size = *size;
  job.local_size = optional_fact(PMIX_RANK_WILDCARD, PMIX_LOCAL_SIZE);
  job.local_rank = optional_fact(client().rank(), PMIX_LOCAL_RANK);
  return job;
}

}  // namespace onesum::cluster

#else

namespace onesum::cluster {
namespace {

[[noreturn]] void refuse() {
  throw Error(
      ErrorCode::kUnimplemented,
      "the workers' launcher speaks PMIx, and this build of onesum does not: its header pmix.h was not "
      "found; install it (Debian: libpmix-dev) and build again, or set ONESUM_ADDRESS to HOST:PORT of "
      "worker 0");
}

}  // namespace

std::unique_ptr<AddressBoard> open_pmix_board() { refuse(); }
PmixJob ask_pmix_job() { refuse(); }

}  // namespace onesum::cluster

#endif
