// Collectives of a native engine with numbers whose sums every type holds exactly: whatever order they are
// added in, one result is right.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/gpu.h"

namespace onesum::testing {

struct NativeCase {
  engine::NativeCollective collective = engine::NativeCollective::kAllReduce;
  Element element = Element::kFloat32;
  int root = -1;
  // A broadcast: whether the root has only a source.
  bool in_place = false;
  std::vector<std::size_t> counts{};

  std::string text() const;
};

// The plug-in on the emulated GPU, with `emulator()`.
std::unique_ptr<engine::GpuPlatform> open_platform();

// Throws std::runtime_error after half a minute; what the communicator throws.
void await_ready(engine::Communicator& communicator);
void await(engine::Mark& mark);

// What this process has in a case: memory on its devices.
class NativeRun {
 public:
  NativeRun(engine::GpuPlatform& platform, engine::Communicator& communicator, int size,
            std::span<const engine::NativeEngine::Member> members, const NativeCase& what);
  ~NativeRun();
  NativeRun(const NativeRun&) = delete;
  NativeRun& operator=(const NativeRun&) = delete;

  void give();
  // A mark on each device, after what was given has entered the queues.
  void record();
  bool is_reached();
  void await_marks();
  // What is wrong with the memory of all devices; none: empty.
  std::string find_faults();

 private:
  struct Piece {
    std::byte* source = nullptr;
    std::byte* destination = nullptr;
  };

  bool is_root(std::size_t device) const { return members_[device].rank == what_.root; }
  std::size_t bytes(std::size_t piece) const { return what_.counts[piece] * size_of(what_.element); }
  std::vector<int> brought(int rank, std::size_t piece) const;
  std::vector<int> result(std::size_t piece) const;
  std::byte* allocate(std::size_t device, std::size_t piece, const std::vector<int>& values);
  void copy(std::size_t device, std::byte* destination, const std::byte* source, std::size_t bytes);
  std::string compare(std::size_t device, std::size_t piece, const std::byte* memory,
                      const std::vector<int>& expected);

  engine::GpuPlatform& platform_;
  engine::Communicator& communicator_;
  int size_;
  std::vector<engine::NativeEngine::Member> members_;
  NativeCase what_;
  std::vector<Piece> pieces_;  // by piece, then by device
  std::vector<engine::NativeShare> shares_;
  std::vector<std::unique_ptr<engine::Mark>> marks_;
};

// All of it: what is wrong with the results; none: empty.
std::string run_case(engine::GpuPlatform& platform, engine::Communicator& communicator, int size,
                     std::span<const engine::NativeEngine::Member> members, const NativeCase& what);

// What processes run together, in the same order.
std::vector<NativeCase> cases_between_processes();

}  // namespace onesum::testing
