#include "cli/bench_meeting.h"

#include <filesystem>
#include <random>
#include <string>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <onesum/error.h>

#include "base/clock.h"
#include "base/config.h"
#include "base/fd.h"
#include "base/machine.h"
#include "cli/bench_spin.h"

namespace onesum::cli {
namespace {

// Where the memory is: a descriptor of rank 0's, found by the name that it was given, which no other has.
struct Place {
  pid_t pid = 0;
  int fd = -1;
  std::uint32_t name = 0;
};

std::string file_name(const Place& place) { return fmt::format("onesum-bench-{:08x}", place.name); }

Place place_of_first(Lockstep& lockstep, const Place& own) {
  const double numbers[] = {static_cast<double>(own.pid), static_cast<double>(own.fd),
                            static_cast<double>(own.name)};
  const std::vector<double> first = lockstep.gather(numbers).front();
  return {static_cast<pid_t>(first[0]), static_cast<int>(first[1]), static_cast<std::uint32_t>(first[2])};
}

// On another machine the process is another one, whose files are left alone.
Fd open_of_first(const Place& place) {
  const std::string path = fmt::format("/proc/{}/fd/{}", place.pid, place.fd);
  std::error_code error;
  const std::string found = std::filesystem::read_symlink(path, error).string();
  if (error || !found.starts_with("/memfd:" + file_name(place) + " ")) return Fd();
  return Fd(open(path.c_str(), O_RDWR | O_CLOEXEC));
}

void* map(const Fd& memory, std::size_t bytes) {
  if (!memory.is_open()) return nullptr;
  void* address = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory.get(), 0);
  return address == MAP_FAILED ? nullptr : address;
}

}  // namespace

std::unique_ptr<Meeting> Meeting::make(Lockstep& lockstep) {
  const std::size_t bytes = lockstep.size() * sizeof(Line);
  Place own;
  Fd memory;
  if (lockstep.is_first()) {
    own = {getpid(), -1, std::random_device()()};
    memory = Fd(memfd_create(file_name(own).c_str(), MFD_CLOEXEC));
    if (memory.is_open() && ftruncate(memory.get(), static_cast<off_t>(bytes)) != 0) memory.reset();
    own.fd = memory.get();
  }
  const Place place = place_of_first(lockstep, own);
  if (!lockstep.is_first()) memory = open_of_first(place);
  void* address = map(memory, bytes);
  const bool has_all = lockstep.largest(address != nullptr ? 0.0 : 1.0) == 0;  // all have opened it by now
  if (!has_all) {
    if (address != nullptr) munmap(address, bytes);
    return nullptr;
  }
  return std::unique_ptr<Meeting>(new Meeting(address, lockstep.rank(), lockstep.size()));
}

Meeting::Meeting(void* memory, std::size_t rank, std::size_t size)
    : lines_(static_cast<Line*>(memory)),  // fresh pages are zeros, and so is a Line
      rank_(rank),
      size_(size),
      // A few microseconds: other programs may have left one core to two workers, even where there are more.
      most_spins_(size > available_cores() ? 0 : 100) {}

Meeting::~Meeting() { munmap(lines_, size_ * sizeof(Line)); }

void Meeting::meet() {
  constexpr int kLooksPerClock = 4096;
  const std::uint64_t mine = lines_[rank_].meetings.load(std::memory_order_relaxed) + 1;
  lines_[rank_].meetings.store(mine, std::memory_order_release);
  for (std::size_t r = 0; r < size_; ++r) {
    int looks = 0;
    Clock::time_point started;
    spin_until(
        [&] {
          if (lines_[r].meetings.load(std::memory_order_acquire) >= mine) return true;
          if (++looks % kLooksPerClock != 0) return false;
          if (started == Clock::time_point()) started = now();
          if (now() - started > process_config().progress_timeout) refuse_to_wait(r);
          return false;
        },
        most_spins_);
  }
}

void Meeting::refuse_to_wait(std::size_t rank) const {
  throw Error(ErrorCode::kDeadlineExceeded,
              fmt::format("worker {} did not come while the bound was measured; waited {:g} s "
                          "(ONESUM_PROGRESS_TIMEOUT)",
                          rank, std::chrono::duration<double>(process_config().progress_timeout).count()));
}

}  // namespace onesum::cli
