// The memory that a bench works on, as a caller would bring it: allocated from the C library, or on GPUs, and
// borrowed by tensors.
//
// For each device of this process an arena of inputs and one of results, in which the tensors of the workload
// lie one after the other on cache lines of their own. All of it is touched, so no call meets a page for the
// first time.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <onesum/collective.h>
#include <onesum/dtype.h>
#include <onesum/shape.h>
#include <onesum/values.h>

#include "cli/bench_pattern.h"

namespace onesum::cli {

inline constexpr std::size_t kLine = 64;  // bytes

struct Workload {
  CollectiveKind collective = CollectiveKind::kReduce;
  ReduceOp op = ReduceOp::kSum;
  DType dtype = DType::kFloat32;
  std::vector<Shape> shapes;
  std::vector<std::string> devices;  // of all replicas, in their order
  std::size_t processes = 1;         // which have equally many of the devices, one after the other
  std::size_t rank = 0;              // of this process among them
  bool huge_pages = false;
  std::size_t gpus = 0;  // of this process, on which its replicas are; 0: they are on CPUs

  std::size_t elements() const;
  std::size_t bytes() const;  // of one replica
  std::size_t replicas() const { return devices.size(); }
  std::size_t own_replicas() const { return devices.size() / processes; }  // on devices of this process
  std::size_t first_own() const { return rank * own_replicas(); }
  const std::string& own_device(std::size_t own) const { return devices[first_own() + own]; }
  bool can_be_in_place() const { return result_dtype(op, dtype) == dtype; }
  std::size_t needed_bytes() const;  // of a Workspace
};

// Throws resource_exhausted, naming what is needed and what there is, where so many processes of this machine
// that have such a workspace each would find too little memory of the host.
void refuse_too_large(const Workload& workload, std::size_t processes_here);

class Workspace {
 public:
  explicit Workspace(Workload workload);

  const Workload& workload() const { return workload_; }
  std::span<const PerReplica> values() const { return values_; }    // one per tensor
  std::span<const PerReplica> results() const { return results_; }  // on the same devices, other memory

  // Each device's arena, for work on all its tensors at once. A multiple of kLine long, padding included. The
  // host cannot read those of GPUs.
  std::span<std::byte* const> value_arenas() const { return value_arenas_.starts; }
  std::span<std::byte* const> result_arenas() const { return result_arenas_.starts; }
  std::size_t arena_bytes() const { return value_arenas_.bytes; }  // of the values

  // Writes the inputs anew, and something else into the results.
  void reset(const Pattern& pattern);

  // How far `results` are from the sums; what is wrong names tensor, device and element.
  static Difference difference(const Pattern& pattern, std::span<const PerReplica> results);
  static Difference difference(const Pattern& pattern, std::span<const Mirrored> results);

  // What of the above is about one tensor: some of its elements, and what was found to be wrong with them.
  static std::vector<std::byte> bytes_of(const Tensor& tensor, std::size_t first, std::size_t elements);
  static void add(const Difference& one, std::size_t number, const Tensor& tensor, Difference& all);

 private:
  struct Free {
    void operator()(std::byte* memory) const noexcept;
  };
  struct Arenas {
    std::size_t bytes = 0;  // of one
    std::vector<std::unique_ptr<std::byte, Free>> memory;
    std::vector<Tensor> gpu_memory;
    std::vector<std::byte*> starts;
  };
  void allocate(Arenas& arenas);
  void allocate_on_gpus(Arenas& arenas);
  std::vector<PerReplica> tensors_in(const Arenas& arenas, DType dtype) const;

  Workload workload_;
  Arenas value_arenas_;
  Arenas result_arenas_;
  std::vector<PerReplica> values_;
  std::vector<PerReplica> results_;
};

}  // namespace onesum::cli
