// What an engine does for the devices of one kind in this process: memory, kernels and threads.
//
// exec binds plans against this interface and api allocates results through it; neither knows a concrete
// engine. An engine outlives everything bound to it. All functions may be called from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/element.h"

namespace onesum::engine {

// One n-ary reduction, element by element:
//   every destination = convert<output>( tree(convert<accumulator>(source) …) / divisor )
// `merges` gives the tree in postfix (plan/plan.h, Operand). With integer accumulators and a divisor the sum
// is converted to the output type first and divided there; otherwise the division happens in the accumulator.
// A divisor of 1 divides nothing. One source with equal types is a copy.
struct ReduceForm {
  Element input = Element::kFloat32;
  Element accumulator = Element::kFloat32;
  Element output = Element::kFloat32;
  std::int64_t divisor = 1;
  std::span<const std::uint8_t> merges;  // one per source; must outlive the kernel
  std::size_t destinations = 1;
  bool streaming =
      false;  // the destinations are not read soon and were not just read: stores may bypass caches
};

// Arguments of one run of a kernel. No pointer needs alignment. A destination may equal a source exactly;
// other overlaps are the caller's fault.
struct KernelArgs {
  const ReduceForm* form = nullptr;
  std::byte* const* destinations = nullptr;
  const std::byte* const* sources = nullptr;
  // Element of every source and destination to begin with, so that segments of one vector share one pointer
  // table.
  std::size_t first = 0;
  std::size_t count = 0;  // elements
};
using Kernel = void (*)(const KernelArgs&) noexcept;

// Called once for every number in [0, count), on any thread.
using SegmentTask = void (*)(void* context, std::uint32_t segment) noexcept;

class DeviceEngine {
 public:
  virtual ~DeviceEngine() = default;
  DeviceEngine() = default;
  DeviceEngine(const DeviceEngine&) = delete;
  DeviceEngine& operator=(const DeviceEngine&) = delete;

  // The device type it serves: "CPU".
  virtual std::string_view device_type() const noexcept = 0;

  // Memory with at least 64-byte alignment; what it contains is unspecified. Zero bytes give a valid pointer
  // too. Released memory keeps its pages for the next allocation, up to a limit. Throws resource_exhausted,
  // naming the bytes asked for and what is in use.
  virtual void* allocate(std::size_t bytes) = 0;
  virtual void release(void* memory, std::size_t bytes) noexcept = 0;

  // The kernel for a form; never null. Throws invalid_argument for a form without meaning (sums of bool).
  virtual Kernel reduce_kernel(const ReduceForm& form) const = 0;

  // Whether stores that bypass the caches pay off, by measurement, when a step writes `bytes_written` bytes
  // in all to memory that it does not read.
  virtual bool prefers_streaming(std::size_t bytes_written) const noexcept = 0;

  // Runs all segments and returns when the last one is done; the caller works too, helpers join when there is
  // enough to do and cores are free. Never waits for a helper that has claimed nothing. Threads see the
  // standard floating-point environment (round to nearest, subnormals kept), the caller's own is restored.
  // May be called from several threads at once.
  virtual void run_segments(std::uint32_t count, SegmentTask task, void* context) noexcept = 0;

  // How many bytes of memory traffic make a good segment, and how many threads may take part.
  virtual std::size_t segment_bytes() const noexcept = 0;
  virtual unsigned threads() const noexcept = 0;

  // For people: the instruction set the kernels were chosen for.
  virtual std::string description() const = 0;
};

}  // namespace onesum::engine
