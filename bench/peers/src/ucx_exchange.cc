// The messages of an all-reduce and nothing else, by UCX: no sums, no copies but UCX's own. What an
// all-reduce over UCX cannot beat. UCX's settings are in the environment; the ranks are started from here.
//   ucx_exchange PEER CASE WORLD 4,1024,...
#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdlib>
#include <string>
#include <vector>

#include <ucp/api/ucp.h>

#include "bare.h"

namespace {

using bare::rank;
using bare::require;
using bare::world;

constexpr std::size_t kPiece = 127 << 10;  // with UCX's headers within one of its segments of 128 KiB
constexpr std::size_t kPieces = 4;         // under way at a time
constexpr std::size_t kSmall = 64 << 10;   // up to here more bytes in fewer messages may be faster
constexpr int kEmptyLooks = 10;            // before others get the core, where ranks are more than cores

struct Addresses {
  char of[bare::kMostRanks][1024] = {};
};

struct Transfer {  // as many bytes to a rank as from it
  int partner;
  const std::byte* from;
  std::byte* to;
  std::size_t bytes;
};
using Step = std::vector<Transfer>;

Addresses* addresses;
int under_way;
ucp_worker_h worker;
std::vector<ucp_ep_h> endpoints;

void require(ucs_status_t status) { require(status == UCS_OK, ucs_status_string(status)); }

template <typename Condition>
void progress_until(Condition holds) {
  for (int empty = 0; !holds();) {
    if (ucp_worker_progress(worker) != 0) {
      empty = 0;
    } else if (bare::yields && ++empty > kEmptyLooks) {
      sched_yield();
    }
  }
}

// Those who wait help UCX to send what others wait for.
constexpr auto kProgressUntil = [](auto holds) { progress_until(holds); };

// ---- connections ----

void make_worker() {
  ucp_config_t* config = nullptr;
  require(ucp_config_read(nullptr, nullptr, &config));
  ucp_params_t params{};
  params.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_ESTIMATED_NUM_EPS;
  params.features = UCP_FEATURE_TAG;
  params.estimated_num_eps = static_cast<std::size_t>(world);
  ucp_context_h context = nullptr;
  require(ucp_init(&params, config, &context));
  ucp_config_release(config);
  ucp_worker_params_t worker_params{};
  require(ucp_worker_create(context, &worker_params, &worker));
}

void tell_address() {
  ucp_address_t* address = nullptr;
  std::size_t length = 0;
  require(ucp_worker_get_address(worker, &address, &length));
  require(length <= sizeof addresses->of[rank], "an address too long");
  std::copy_n(reinterpret_cast<const char*>(address), length, addresses->of[rank]);
  ucp_worker_release_address(worker, address);
}

void connect() {
  endpoints.resize(static_cast<std::size_t>(world));
  for (int partner = 0; partner < world; ++partner) {
    if (partner == rank) continue;
    ucp_ep_params_t params{};
    params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                        UCP_EP_PARAM_FIELD_ERR_HANDLER;
    params.address = reinterpret_cast<const ucp_address_t*>(addresses->of[partner]);
    params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
    params.err_handler.cb = [](void*, ucp_ep_h, ucs_status_t) {};  // requests end with the error
    require(ucp_ep_create(worker, &params, &endpoints[static_cast<std::size_t>(partner)]));
  }
}

// ---- a call ----

void on_end(void* request, ucs_status_t status) {
  require(status);
  --under_way;
  ucp_request_free(request);
}

void started(ucs_status_ptr_t request) {
  if (UCS_PTR_IS_ERR(request)) require(UCS_PTR_STATUS(request));
  if (request != nullptr) ++under_way;
}

void start_receive(const Transfer& transfer, std::size_t offset, std::size_t bytes) {
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_MEMORY_TYPE;
  param.cb.recv = [](void* request, ucs_status_t status, const ucp_tag_recv_info_t*, void*) {
    on_end(request, status);
  };
  param.memory_type = UCS_MEMORY_TYPE_HOST;
  const auto tag = static_cast<ucp_tag_t>(transfer.partner);
  started(ucp_tag_recv_nbx(worker, transfer.to + offset, bytes, tag, ~ucp_tag_t{0}, &param));
}

void start_send(const Transfer& transfer, std::size_t offset, std::size_t bytes) {
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_MEMORY_TYPE;
  param.cb.send = [](void* request, ucs_status_t status, void*) { on_end(request, status); };
  param.memory_type = UCS_MEMORY_TYPE_HOST;
  const ucp_ep_h endpoint = endpoints[static_cast<std::size_t>(transfer.partner)];
  started(ucp_tag_send_nbx(endpoint, transfer.from + offset, bytes, static_cast<ucp_tag_t>(rank), &param));
}

void exchange(const Step& step, std::size_t from, std::size_t to, std::size_t piece) {
  for (const auto start : {start_receive, start_send}) {
    for (const Transfer& transfer : step) {
      for (std::size_t offset = from; offset < to; offset += piece)
        start(transfer, offset, std::min(piece, to - offset));
    }
  }
  progress_until([] { return under_way == 0; });
}

void call(const std::vector<Step>& steps, std::size_t piece) {
  for (const Step& step : steps) {
    const std::size_t bytes = step[0].bytes;  // as of all of its transfers
    const std::size_t burst = piece * kPieces;
    for (std::size_t from = 0; from < bytes; from += burst)
      exchange(step, from, std::min(from + burst, bytes), piece);
  }
}

// ---- ways ----

struct Memory {
  std::vector<std::byte> tensor, scratch;
};

// One step: everything to everybody.
std::vector<Step> direct(Memory& memory) {
  const std::size_t bytes = memory.tensor.size();
  Step step;
  for (int i = 1; i < world; ++i) {
    const int partner = (rank + i) % world;
    step.push_back({partner, memory.tensor.data(), memory.scratch.data() + step.size() * bytes, bytes});
  }
  return {step};
}

// To each rank its part of everybody's tensor, and then from each rank the sum of its part.
std::vector<Step> in_parts(Memory& memory) {
  const std::size_t part = memory.tensor.size() / static_cast<std::size_t>(world);
  const auto part_of = [&](int owner) {
    return memory.tensor.data() + static_cast<std::size_t>(owner) * part;
  };
  Step scatter, gather;
  for (int i = 1; i < world; ++i) {
    const int partner = (rank + i) % world;
    scatter.push_back({partner, part_of(partner), memory.scratch.data() + scatter.size() * part, part});
    gather.push_back({partner, part_of(rank), part_of(partner), part});
  }
  return {scatter, gather};
}

// Everything to one rank after the other, each twice as far away.
std::vector<Step> doubling(Memory& memory) {
  const std::size_t bytes = memory.tensor.size();
  std::vector<Step> steps;
  for (int distance = 1; distance < world; distance *= 2) {
    const int partner = rank ^ distance;
    std::byte* to = memory.scratch.data() + steps.size() * bytes;
    steps.push_back({{partner, memory.tensor.data(), to, bytes}});
  }
  return steps;
}

// As in_parts, in more steps with fewer messages: half of what is left to one rank after the other, each half
// as far away, and back.
std::vector<Step> halving(Memory& memory) {
  std::vector<Step> steps, back;
  std::byte* mine = memory.tensor.data();
  std::byte* free = memory.scratch.data();
  std::size_t bytes = memory.tensor.size();
  for (int distance = world / 2; distance > 0; distance /= 2) {
    const int partner = rank ^ distance;
    bytes /= 2;
    std::byte* theirs = partner < rank ? mine : mine + bytes;
    if (partner < rank) mine += bytes;
    steps.push_back({{partner, theirs, free, bytes}});
    back.push_back({{partner, mine, theirs, bytes}});
    free += bytes;
  }
  steps.insert(steps.end(), back.rbegin(), back.rend());
  return steps;
}

// ---- measuring ----

// Whatever is to be received is there, and comes from others.
void check_call(Memory& memory, const std::vector<Step>& steps, std::size_t piece) {
  const auto mine = static_cast<std::byte>(rank + 1);
  std::ranges::fill(memory.tensor, mine);
  std::ranges::fill(memory.scratch, std::byte{0});
  call(steps, piece);
  for (const Step& step : steps) {
    for (const Transfer& transfer : step) {
      const bool has_come = std::all_of(transfer.to, transfer.to + transfer.bytes,
                                        [mine](std::byte one) { return one != mine && one != std::byte{0}; });
      require(has_come, "wrong bytes");
    }
  }
}

void measure_size(const std::string& peer, const std::string& section, std::size_t bytes) {
  const auto ranks = static_cast<std::size_t>(world);
  const bool is_small = bytes <= kSmall;
  Memory memory{std::vector<std::byte>(bytes),
                std::vector<std::byte>(is_small ? (ranks - 1) * bytes : bytes)};
  const auto measure_way = [&](const char* ending, const std::vector<Step>& steps) {
    const std::string name = "\"peer\":\"" + peer + "\",\"case\":\"" + section + ending;
    const auto measure_in = [&](std::size_t piece, const char* last) {
      check_call(memory, steps, piece);
      bare::measure(name + last, bytes, [&] { call(steps, piece); }, kProgressUntil);
    };
    measure_in(bytes, "\"");
    if (steps[0][0].bytes > kPiece) measure_in(kPiece, "_pieces\"");
  };
  if (world == 2) {
    measure_way("_in", direct(memory));
    return;
  }
  const bool is_power_of_2 = std::has_single_bit(ranks);
  if (bytes >= 4 * ranks) {
    measure_way("_in", in_parts(memory));
    if (is_power_of_2) measure_way("_in_halving", halving(memory));
  }
  if (is_small) {
    measure_way("_in_direct", direct(memory));
    if (is_power_of_2) measure_way("_in_doubling", doubling(memory));
  }
}

[[noreturn]] void be_rank(char** arguments) {
  make_worker();
  tell_address();
  bare::barrier(kProgressUntil);
  connect();
  bare::for_each_size(arguments, measure_size);
  bare::barrier(kProgressUntil);
  std::_Exit(0);  // a connection that is closed disturbs those who still look
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) return 2;
  addresses = bare::make_shared<Addresses>();
  return bare::run_ranks(argv, be_rank);
}
