// All-reduces of float32 between processes through memory that they share, by hand: no types, odd sizes,
// plans or failures. What an all-reduce of private memory can hardly beat on this machine.
//   shm_exchange PEER CASE WORLD 4,1024,...
//
// Tensors are private, so what others add must be written where they can read it. A call goes piece by piece;
// each rank has slots for a few pieces, which are used again and again.
//   exchange: everyone writes its piece and adds up those of all, for itself
//   parts:    everyone writes its piece but for the part that it adds up itself, adds that part up for all,
//             and takes the other parts of the sum from the others
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "bare.h"

namespace {

using bare::rank;
using bare::world;

constexpr std::size_t kSlots = 4;
constexpr std::size_t kMostPiece = 256 << 10;  // bytes
constexpr std::size_t kExchanged = 2 << 20;    // up to here everybody may add up everything

struct Slot {
  float contribution[kMostPiece / sizeof(float)];
  float sum[kMostPiece / sizeof(float)];  // of the own part
};

struct Counter {
  alignas(128) std::atomic<std::uint64_t> value{0};  // pieces so far
};

struct Rank {  // written by its own rank alone
  Counter written, added, finished;
  float tiny[kSlots][16];  // pieces of one line, beside the counters
  Slot slots[kSlots];
};

struct Ranks {
  Rank of[bare::kMostRanks];
};

Ranks* ranks;
std::uint64_t pieces;  // so far

void relax() {
  if (bare::yields) {
    sched_yield();
  } else {
    __builtin_ia32_pause();
  }
}

constexpr auto kWaitUntil = [](auto holds) {
  while (!holds()) relax();
};

// Sequentially consistent: the line is there for the others before this rank begins to look for theirs.
void tell(Counter Rank::* counter, std::uint64_t value) { (ranks->of[rank].*counter).value.store(value); }

void wait_for(int other, Counter Rank::* counter, std::uint64_t value) {
  const std::atomic<std::uint64_t>& theirs = (ranks->of[other].*counter).value;
  kWaitUntil([&] { return theirs.load(std::memory_order_acquire) >= value; });
}

void wait_for_all(Counter Rank::* counter, std::uint64_t value) {
  for (int i = 1; i < world; ++i) wait_for((rank + i) % world, counter, value);
}

float* contribution(int of, std::size_t count) {
  Rank& its = ranks->of[of];
  return count <= std::size(its.tiny[0]) ? its.tiny[pieces % kSlots]
                                         : its.slots[pieces % kSlots].contribution;
}

// The own replica and those of all others, from `first` on, two others at a time.
void add_up(float* tensor, std::size_t first, std::size_t count, std::size_t whole) {
  for (int i = 1; i < world; i += 2) {
    const float* a = contribution((rank + i) % world, whole) + first;
    if (i + 1 == world) {
      for (std::size_t k = 0; k < count; ++k) tensor[k] += a[k];
    } else {
      const float* b = contribution((rank + i + 1) % world, whole) + first;
      for (std::size_t k = 0; k < count; ++k) tensor[k] += a[k] + b[k];
    }
  }
}

// The slot was used so many pieces ago.
void begin_piece() {
  if (pieces >= kSlots) wait_for_all(&Rank::finished, pieces - kSlots + 1);
}

void end_piece() { tell(&Rank::finished, ++pieces); }

void exchange(float* tensor, std::size_t count) {
  begin_piece();
  std::memcpy(contribution(rank, count), tensor, count * sizeof(float));
  tell(&Rank::written, pieces + 1);
  wait_for_all(&Rank::written, pieces + 1);
  add_up(tensor, 0, count, count);
  end_piece();
}

std::pair<std::size_t, std::size_t> part_of(int owner, std::size_t count) {
  const auto number = static_cast<std::size_t>(owner), all = static_cast<std::size_t>(world);
  return {count * number / all, count * (number + 1) / all};
}

void parts(float* tensor, std::size_t count) {
  begin_piece();
  const auto [first, last] = part_of(rank, count);
  float* box = contribution(rank, count);
  std::memcpy(box, tensor, first * sizeof(float));
  std::memcpy(box + last, tensor + last, (count - last) * sizeof(float));
  tell(&Rank::written, pieces + 1);
  wait_for_all(&Rank::written, pieces + 1);
  add_up(tensor + first, first, last - first, count);
  std::memcpy(ranks->of[rank].slots[pieces % kSlots].sum, tensor + first, (last - first) * sizeof(float));
  tell(&Rank::added, pieces + 1);
  for (int i = 1; i < world; ++i) {
    const int other = (rank + i) % world;
    wait_for(other, &Rank::added, pieces + 1);
    const auto [from, to] = part_of(other, count);
    std::memcpy(tensor + from, ranks->of[other].slots[pieces % kSlots].sum, (to - from) * sizeof(float));
  }
  end_piece();
}

using Way = void (*)(float*, std::size_t);

void call(Way way, std::vector<float>& tensor, std::size_t piece) {
  for (std::size_t first = 0; first < tensor.size(); first += piece) {
    way(tensor.data() + first, std::min(piece, tensor.size() - first));
  }
}

void check(Way way, std::vector<float>& tensor, std::size_t piece) {
  std::ranges::fill(tensor, static_cast<float>(rank + 1));
  call(way, tensor, piece);
  const auto sum = static_cast<float>(world * (world + 1) / 2);
  bare::require(std::ranges::all_of(tensor, [sum](float one) { return one == sum; }), "wrong sums");
  std::ranges::fill(tensor, 0.F);  // which stay as they are
}

void measure_size(const std::string& peer, const std::string& section, std::size_t bytes) {
  std::vector<float> tensor(bytes / sizeof(float));
  const auto measure_way = [&](const char* ending, Way way, std::size_t piece) {
    const std::string name = "\"peer\":\"" + peer + "\",\"case\":\"" + section + ending;
    check(way, tensor, piece / sizeof(float));
    bare::measure(name, bytes, [&] { call(way, tensor, piece / sizeof(float)); }, kWaitUntil);
  };
  if (bytes <= kExchanged) measure_way("_in\"", exchange, kMostPiece);
  if (bytes < 4096) return;
  measure_way("_in_parts\"", parts, kMostPiece);
  if (bytes > kMostPiece / 4) measure_way("_in_small_parts\"", parts, kMostPiece / 4);
}

[[noreturn]] void be_rank(char** arguments) {
  bare::for_each_size(arguments, measure_size);
  std::_Exit(0);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) return 2;
  ranks = bare::make_shared<Ranks>();
  return bare::run_ranks(argv, be_rank);
}
