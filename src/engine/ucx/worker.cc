#include "engine/ucx/worker.h"

#include <memory>
#include <mutex>
#include <set>
#include <utility>

#include <onesum/error.h>

#include "base/text.h"

namespace onesum::engine::ucx {
namespace {

[[noreturn]] void refuse(const std::string& what, ucs_status_t status) {
  throw Error(ErrorCode::kUnavailable, "UCX: " + what + ": " + ucs_status_string(status));
}

void require(ucs_status_t status, const char* what) {
  if (status != UCS_OK) refuse(what, status);
}

struct ReleaseConfig {
  void operator()(ucp_config_t* config) const noexcept { ucp_config_release(config); }
};
using Config = std::unique_ptr<ucp_config_t, ReleaseConfig>;

void set(const Config& config, const char* name, const std::string& value) {
  const ucs_status_t status = ucp_config_modify(config.get(), name, value.c_str());
  if (status != UCS_OK) refuse("setting UCX_" + std::string(name) + " to " + quoted(value), status);
}

// Receivers wait for most messages before they are sent and have room for the others, so that nothing is
// gained by asking them first (rendezvous). Messages are copied to UCX's buffers, which are small by default
// and here have room for a whole copy of an outbox as it is by default: without that copy UCX 1.13 ends the
// process with a failed assertion if a peer dies while it is being sent to.
void tune_for_tcp(const Config& config) {
  set(config, "RNDV_THRESH", "inf");
  set(config, "ZCOPY_THRESH", "inf");
  set(config, "TX_SEG_SIZE", "264k");
  set(config, "RX_SEG_SIZE", "264k");
}

Config make_config(const WorkerOptions& options) {
  ucp_config_t* read = nullptr;
  require(ucp_config_read(nullptr, nullptr, &read), "reading its settings");
  Config config(read);
  set(config, "TLS", options.transports);
  if (options.transports == "tcp") tune_for_tcp(config);
  if (!options.devices.empty()) set(config, "NET_DEVICES", device_names(options.devices));
  return config;
}

}  // namespace

Worker::Worker(const WorkerOptions& options) : handles_(std::make_unique<Handles>()) {
  try {
    const std::set<int> before = listening_sockets();
    make_context(options);
    make_worker();
    read_address();
    doors_ = Doors(before, address_);
  } catch (...) {
    destroy();
    throw;
  }
}

Worker::~Worker() { destroy(); }

void Worker::make_context(const WorkerOptions& options) {
  const Config config = make_config(options);
  ucp_params_t params{};
  params.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_ESTIMATED_NUM_EPS;
  params.features = UCP_FEATURE_TAG | UCP_FEATURE_WAKEUP;
  params.estimated_num_eps = static_cast<std::size_t>(options.peers);
  const ucs_status_t status = ucp_init(&params, config.get(), &handles_->context);
  if (status != UCS_OK) {
    refuse("no transport among " + quoted(options.transports) +
               (options.devices.empty() ? "" : " on devices " + quoted(options.devices)) +
               "; `ucx_info -d` lists what there is",
           status);
  }
}

std::vector<std::string> Worker::memory_types() const {
  ucp_context_attr_t attributes{};
  attributes.field_mask = UCP_ATTR_FIELD_MEMORY_TYPES;
  require(ucp_context_query(handles_->context, &attributes), "asking for the memory it reaches");
  return names_of_memory_types(attributes.memory_types);
}

void Worker::make_worker() {
  ucp_worker_params_t params{};
  params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  params.thread_mode = UCS_THREAD_MODE_SERIALIZED;
  require(ucp_worker_create(handles_->context, &params, &handles_->worker), "making a worker");
  require(ucp_worker_get_efd(handles_->worker, &event_fd_), "making an event descriptor");
}

void Worker::read_address() {
  ucp_address_t* address = nullptr;
  std::size_t length = 0;
  require(ucp_worker_get_address(handles_->worker, &address, &length), "asking for its address");
  address_.assign(reinterpret_cast<const char*>(address), length);
  ucp_worker_release_address(handles_->worker, address);
}

void Worker::destroy() noexcept {
  if (handles_ == nullptr) return;
  if (handles_->worker != nullptr) ucp_worker_destroy(handles_->worker);
  if (handles_->context != nullptr) ucp_cleanup(handles_->context);
}

// In a list, so that leak checkers see that it is meant.
void Worker::abandon() noexcept {
  static std::mutex mutex;
  static Handles* first = nullptr;
  const std::lock_guard lock(mutex);
  handles_->next = std::exchange(first, handles_.get());
  handles_.release();  // NOLINT(bugprone-unused-return-value)
}

std::vector<std::string> names_of_memory_types(std::uint64_t types) {
  std::vector<std::string> names;
  for (int type = 0; type < UCS_MEMORY_TYPE_LAST; ++type) {
    if ((types >> type & 1) != 0) names.emplace_back(ucs_memory_type_names[type]);
  }
  return names;
}

}  // namespace onesum::engine::ucx
