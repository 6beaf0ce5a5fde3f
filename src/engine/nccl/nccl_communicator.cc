#include "engine/nccl/nccl_communicator.h"

#include <chrono>
#include <cstring>
#include <future>
#include <system_error>
#include <thread>
#include <utility>

#include <onesum/error.h>

#include "base/log.h"
#include "engine/cuda/cuda_error.h"
#include "engine/nccl/nccl_elements.h"

namespace onesum::engine::nccl {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kFinishing = std::chrono::seconds(1);  // for what was given, when nobody wants more
constexpr auto kEnding = std::chrono::seconds(2);     // for everything that the end takes

bool has_failed(ncclResult_t result) noexcept { return result != ncclSuccess && result != ncclInProgress; }

std::string gpu_name(const NcclCommunicator::Local& local) {
  return "GPU:" + std::to_string(local.engine->index());
}

}  // namespace

// Calls of this thread that the library begins together, at end(); if one has failed, at the destructor,
// which forgets them.
class NcclCommunicator::GroupOfCalls {
 public:
  explicit GroupOfCalls(const Library& library) : library_(library) { library_.group_start(); }
  ~GroupOfCalls() {
    if (!is_over_) library_.group_end();
  }
  GroupOfCalls(const GroupOfCalls&) = delete;
  GroupOfCalls& operator=(const GroupOfCalls&) = delete;

  ncclResult_t end() {
    is_over_ = true;
    return library_.group_end();
  }

 private:
  const Library& library_;
  bool is_over_ = false;
};

ncclResult_t NcclCommunicator::Handles::state(std::size_t device) const noexcept {
  ncclResult_t found = ncclInProgress;
  const ncclResult_t asked = library->comm_get_async_error(comms[device], &found);
  return asked == ncclSuccess ? found : asked;
}

bool NcclCommunicator::Handles::are_all(ncclResult_t wanted) const noexcept {
  for (std::size_t device = 0; device < comms.size(); ++device) {
    if (comms[device] == nullptr || state(device) != wanted) return false;
  }
  return true;
}

void NcclCommunicator::Handles::abort() noexcept {
  for (const ncclComm_t comm : comms) {
    if (comm != nullptr) library->comm_abort(comm);
  }
}

void NcclCommunicator::Handles::finish() noexcept {
  bool is_finished = are_all(ncclSuccess);
  if (is_finished) {
    for (const ncclComm_t comm : comms) library->comm_finalize(comm);  // its result is the state, too
    const Clock::time_point deadline = Clock::now() + kFinishing;
    while (!(is_finished = are_all(ncclSuccess)) && Clock::now() < deadline) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  if (!is_finished) return abort();
  for (const ncclComm_t comm : comms) library->comm_destroy(comm);
}

// On a thread of its own, since the library waits there until other processes of this machine have ended
// theirs, too.
void NcclCommunicator::end_in_time(const std::shared_ptr<Handles>& handles,
                                   void (Handles::*end)() noexcept) noexcept {
  try {
    std::packaged_task<void()> task([handles, end] { (handles.get()->*end)(); });
    const std::future<void> over = task.get_future();
    std::thread thread(std::move(task));
    if (over.wait_for(kEnding) == std::future_status::ready) return thread.join();
    thread.detach();
    log(LogLevel::kWarning,
        handles->name + ": the library still waits for other processes, and is not waited for any longer");
  } catch (const std::system_error&) {  // no more threads
    (handles.get()->*end)();
  }
}

NcclCommunicator::NcclCommunicator(std::shared_ptr<const Library> library, std::shared_ptr<LaunchTurn> turn,
                                   int size, std::vector<Local> locals)
    : library_(std::move(library)), turn_(std::move(turn)), size_(size), locals_(std::move(locals)) {
  for (const Local& local : locals_) {
    queues_.push_back(std::make_unique<cuda::CudaQueue>(local.engine->index()));
  }
}

std::shared_ptr<NcclCommunicator::Handles> NcclCommunicator::make_handles() const {
  auto handles = std::make_shared<Handles>();
  handles->library = library_;
  handles->comms.resize(locals_.size());
  handles->name = library_->name() + " on";
  for (const Local& local : locals_) {
    handles->name += (&local == locals_.data() ? " " : ", ") + gpu_name(local);
  }
  return handles;
}

NcclCommunicator::~NcclCommunicator() {
  if (handles_ == nullptr) return;
  end_in_time(handles_, &Handles::finish);
  turn_->leave(this);
}

void NcclCommunicator::start(const NativeId& id) {
  const std::scoped_lock lock(mutex_);
  handles_ = make_handles();
  failure_.clear();
  is_aborted_.store(false, std::memory_order_relaxed);
  ncclUniqueId unique;
  std::memcpy(&unique, id.data(), id.size());
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  GroupOfCalls calls(*library_);
  for (std::size_t device = 0; device < locals_.size(); ++device) {
    const cuda::OnDevice here(locals_[device].engine->index());
    require(library_->comm_init_rank_config(&handles_->comms[device], size_, unique, locals_[device].rank,
                                            &config),
            device, "joining a group");
  }
  const ncclResult_t result = calls.end();
  if (has_failed(result)) {
    fail(result, handles_->name + ": joining a group: " + library_->words(result, nullptr));
  }
}

bool NcclCommunicator::is_ready() {
  const std::scoped_lock lock(mutex_);
  require_usable();
  bool is_ready = true;
  for (std::size_t device = 0; device < locals_.size(); ++device) {
    const ncclResult_t state = handles_->state(device);
    require(state, device, "working with its group");
    is_ready = is_ready && state == ncclSuccess;
  }
  if (is_ready) turn_->leave(this);
  return is_ready;
}

void NcclCommunicator::give(const NativeWork& work) {
  const std::scoped_lock lock(mutex_);
  require_usable();
  if (work.collective != NativeCollective::kBroadcast && !sum_type(work.element)) {
    throw Error(ErrorCode::kInvalidArgument,
                library_->name() + " does not add " + std::string(to_string(work.element)));
  }
  GroupOfCalls calls(*library_);
  for (std::size_t piece = 0; piece < work.counts.size(); ++piece) {
    if (work.counts[piece] == 0) continue;
    for (std::size_t device = 0; device < locals_.size(); ++device) {
      require(call(work, piece, device), device, "giving it a collective");
    }
  }
  const ncclResult_t result = calls.end();
  if (has_failed(result)) {
    fail(result, handles_->name + ": giving them a collective: " + library_->words(result, nullptr));
  }
}

ncclResult_t NcclCommunicator::call(const NativeWork& work, std::size_t piece, std::size_t device) const {
  const NativeShare& share = work.shares[piece * locals_.size() + device];
  const std::size_t count = work.counts[piece];
  const ncclComm_t comm = handles_->comms[device];
  const cudaStream_t stream = queues_[device]->stream();
  switch (work.collective) {
    case NativeCollective::kAllReduce:
      return library_->all_reduce(share.source, share.destination, count, *sum_type(work.element), ncclSum,
                                  comm, stream);
    case NativeCollective::kReduce:
      return library_->reduce(share.source, share.destination, count, *sum_type(work.element), ncclSum,
                              work.root, comm, stream);
    case NativeCollective::kBroadcast:
      break;
  }
  // As bytes, so types that it does not add travel, too. A root without a destination keeps what it has: in
  // place nothing is written there.
  void* const destination =
      share.destination == nullptr ? const_cast<std::byte*>(share.source) : share.destination;
  return library_->broadcast(share.source, destination, count * size_of(work.element), ncclUint8, work.root,
                             comm, stream);
}

void NcclCommunicator::abort() noexcept {
  is_aborted_.store(true, std::memory_order_relaxed);
  std::shared_ptr<Handles> handles;
  {
    const std::scoped_lock lock(mutex_);
    handles.swap(handles_);
  }
  if (handles != nullptr) end_in_time(handles, &Handles::abort);
  turn_->leave(this);
}

void NcclCommunicator::require_usable() const {
  if (handles_ == nullptr) throw Error(ErrorCode::kUnavailable, library_->name() + ": the group was aborted");
  if (!failure_.empty()) throw_failure();
}

void NcclCommunicator::require(ncclResult_t result, std::size_t device, const char* doing) {
  if (!has_failed(result)) return;
  fail(result, library_->name() + " on " + gpu_name(locals_[device]) + ": " + doing + ": " +
                   library_->words(result, handles_->comms[device]));
}

void NcclCommunicator::fail(ncclResult_t result, const std::string& reason) {
  failure_ = reason;
  has_lost_peer_ = result == ncclRemoteError && size_ > static_cast<int>(locals_.size());
  throw_failure();
}

void NcclCommunicator::throw_failure() const {
  if (has_lost_peer_) throw PeerLost(failure_);
  throw Error(ErrorCode::kUnavailable, failure_);
}

}  // namespace onesum::engine::nccl
