// The messages of an all-reduce and nothing else, by UCX: no sums, no copies but UCX's own. What an
// all-reduce over UCX cannot beat. UCX's settings are in the environment; the ranks are started from here.
//   ucx_exchange PEER CASE WORLD 4,1024,...
// Every rank times every call; a sample is the slowest rank; one JSON line per size and way from rank 0.
#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <sstream>
#include <string>
#include <vector>

#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <ucp/api/ucp.h>
#include <unistd.h>

namespace {

constexpr int kMostRanks = 64;
constexpr int kMostReps = 5000;
constexpr std::size_t kPiece = 127 << 10;  // with UCX's headers within one of its segments of 128 KiB
constexpr std::size_t kPieces = 4;         // under way at a time
constexpr std::size_t kSmall = 64 << 10;   // up to here more bytes in fewer messages may be faster
constexpr int kEmptyLooks = 10;            // before others get the core, where ranks are more than cores

struct Shared {  // by all ranks
  std::atomic<int> arrived{0};
  int reps = 0;
  char address[kMostRanks][1024] = {};
  double us[kMostRanks][kMostReps] = {};
};

struct Transfer {  // as many bytes to a rank as from it
  int partner;
  const std::byte* from;
  std::byte* to;
  std::size_t bytes;
};
using Step = std::vector<Transfer>;

Shared* shared;
int rank, world;
bool yields;
int barriers, under_way;
ucp_worker_h worker;
std::vector<ucp_ep_h> endpoints;

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "ucx_exchange: rank %d: %s\n", rank, what);
  std::_Exit(1);
}

void require(ucs_status_t status) { require(status == UCS_OK, ucs_status_string(status)); }

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

template <typename Condition>
void progress_until(Condition holds) {
  for (int empty = 0; !holds();) {
    if (ucp_worker_progress(worker) != 0) {
      empty = 0;
    } else if (yields && ++empty > kEmptyLooks) {
      sched_yield();
    }
  }
}

// Those who wait help UCX to send what others wait for.
void barrier() {
  const int all = ++barriers * world;
  ++shared->arrived;
  progress_until([all] { return shared->arrived >= all; });
}

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
  require(length <= sizeof shared->address[rank], "an address too long");
  std::copy_n(reinterpret_cast<const char*>(address), length, shared->address[rank]);
  ucp_worker_release_address(worker, address);
}

void connect() {
  endpoints.resize(static_cast<std::size_t>(world));
  for (int partner = 0; partner < world; ++partner) {
    if (partner == rank) continue;
    ucp_ep_params_t params{};
    params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                        UCP_EP_PARAM_FIELD_ERR_HANDLER;
    params.address = reinterpret_cast<const ucp_address_t*>(shared->address[partner]);
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

void print(const std::string& name, std::size_t bytes) {
  std::vector<double> slowest(static_cast<std::size_t>(shared->reps));
  for (std::size_t i = 0; i < slowest.size(); ++i) {
    for (int of = 0; of < world; ++of) slowest[i] = std::max(slowest[i], shared->us[of][i]);
  }
  std::ranges::sort(slowest);
  std::printf("{%s,\"world\":%d,\"bytes\":%zu,\"us_median\":%.2f,\"us_min\":%.2f,\"reps\":%zu}\n",
              name.c_str(), world, bytes, slowest[slowest.size() / 2], slowest[0], slowest.size());
  std::fflush(stdout);
}

void measure(const std::string& name, Memory& memory, const std::vector<Step>& steps, std::size_t piece) {
  const char* set = std::getenv("BENCH_BUDGET");
  const double budget = set != nullptr ? std::atof(set) : 0.3;
  const std::size_t bytes = memory.tensor.size();
  check_call(memory, steps, piece);
  barrier();
  const int warm = bytes < (1 << 20) ? 20 : 2;
  double begin = 0;
  for (int i = 0; i < 2 * warm; ++i) {  // the first ones are slower
    if (i == warm) begin = now();
    call(steps, piece);
  }
  if (rank == 0) {
    shared->reps = static_cast<int>(std::clamp(budget * warm / (now() - begin), 5.0, double{kMostReps}));
  }
  barrier();
  const int reps = shared->reps;
  for (int i = 0; i < reps; ++i) {
    begin = now();
    call(steps, piece);
    shared->us[rank][i] = (now() - begin) * 1e6;
  }
  barrier();
  if (rank == 0) print(name, bytes);
  barrier();
}

void measure_size(const std::string& peer, const std::string& section, std::size_t bytes) {
  const auto ranks = static_cast<std::size_t>(world);
  const bool is_small = bytes <= kSmall;
  Memory memory{std::vector<std::byte>(bytes),
                std::vector<std::byte>(is_small ? (ranks - 1) * bytes : bytes)};
  const auto measure_way = [&](const char* ending, const std::vector<Step>& steps) {
    const std::string name = "\"peer\":\"" + peer + "\",\"case\":\"" + section + ending;
    measure(name + "\"", memory, steps, bytes);
    if (steps[0][0].bytes > kPiece) measure(name + "_pieces\"", memory, steps, kPiece);
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
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  cpu_set_t cores;
  sched_getaffinity(0, sizeof cores, &cores);
  yields = world > CPU_COUNT(&cores);
  make_worker();
  tell_address();
  barrier();
  connect();
  std::stringstream sizes(arguments[4]);
  for (std::string size; std::getline(sizes, size, ',');) {
    measure_size(arguments[1], arguments[2], std::stoul(size));
  }
  barrier();
  std::_Exit(0);  // a connection that is closed disturbs those who still look
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) return 2;
  world = std::atoi(argv[3]);
  require(world >= 2 && world <= kMostRanks, "expected 2 to 64 ranks");
  void* memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  require(memory != MAP_FAILED, "no memory");
  shared = new (memory) Shared;
  for (rank = 0; rank < world; ++rank) {
    const pid_t process = fork();
    require(process >= 0, "cannot fork");
    if (process == 0) be_rank(argv);
  }
  for (int i = 0; i < world; ++i) {  // the end of one that fails is the end of all
    int status = 0;
    if (wait(&status) < 0 || status != 0) return 1;
  }
  return 0;
}
