// What an engine does for devices of this process: memory, and reductions in it.
//
// There are two kinds. The devices of a ThreadedEngine are worked for by threads of this process, the
// caller's among them: CPUs. The device of a QueuedEngine works by itself on what it was given, in queues: a
// GPU.
//
// exec binds plans against these interfaces and api allocates results through them; neither knows a concrete
// engine. An engine outlives everything bound to it. All functions may be called from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/combine.h"
#include "base/element.h"

namespace onesum::engine {

// One n-ary reduction, element by element:
//   every destination = convert<output>( tree(convert<accumulator>(source) …) / divisor )
// The tree is a sum unless `combine` is another operation (base/combine.h), which then is not divided.
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
  Combine combine = Combine::kSum;
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
  // naming the bytes asked for and what is in use. Whoever releases memory knows that nothing uses it any
  // more, on a device that works by itself too.
  virtual void* allocate(std::size_t bytes) = 0;
  virtual void release(void* memory, std::size_t bytes) noexcept = 0;

  // For people: what the kernels were chosen for.
  virtual std::string description() const = 0;
};

class ThreadedEngine : public DeviceEngine {
 public:
  // The kernel for a form; never null. Throws invalid_argument for a form without meaning (sums of bool,
  // minima of complex numbers).
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
};

// A point in the work of a queue.
class Mark {
 public:
  Mark() = default;
  virtual ~Mark() = default;
  Mark(const Mark&) = delete;
  Mark& operator=(const Mark&) = delete;

  // Whether the device has come to where it was recorded last. True if it never was. Throws internal if the
  // device has failed.
  virtual bool is_reached() = 0;
};

// A run of elements that are contiguous in every operand: destinations, then sources.
struct QueuedPiece {
  std::byte* const* pointers = nullptr;
  std::size_t first = 0;  // element of every operand to begin with
  std::size_t count = 0;
};

// One reduction over several pieces.
struct QueuedReduce {
  const ReduceForm* form = nullptr;
  // Sources that are of the accumulator's type and not of the form's input; none: empty.
  std::span<const std::uint8_t> is_wide;
  std::span<const QueuedPiece> pieces;
};

// Rows of bytes, each operand with a stride of its own.
struct QueuedRows {
  std::byte* destination = nullptr;
  std::size_t destination_stride = 0;
  const std::byte* source = nullptr;
  std::size_t source_stride = 0;
  std::size_t row_bytes = 0;
  std::size_t rows = 0;
};

// What a device does by itself, in the order in which it was given. Giving it work returns at once, and
// copies what describes the work. All memory is the device's own, or such as it reaches (QueuedEngine).
// Errors are thrown as internal or resource_exhausted, naming the device.
class Queue {
 public:
  Queue() = default;
  virtual ~Queue() = default;
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  virtual void reduce(const QueuedReduce& work) = 0;
  virtual void copy_rows(const QueuedRows& work) = 0;

  // The mark is of the same engine. It may be recorded again and again; who waits for it waits for the last
  // time before.
  virtual void record(Mark& mark) = 0;
  // What is given from now on begins when the mark is reached. Of any engine of this type.
  virtual void wait_for(Mark& mark) = 0;
};

class QueuedEngine : public DeviceEngine {
 public:
  // Among those of its type: GPU:1 is 1.
  virtual int index() const noexcept = 0;

  // Whether its kernels work in the other's memory.
  virtual bool reaches(const QueuedEngine& other) const noexcept = 0;

  // Memory of the host that it works in, and so do all engines of its type; of whole pages.
  virtual void* allocate_staging(std::size_t bytes) = 0;
  virtual void release_staging(void* memory, std::size_t bytes) noexcept = 0;

  // Throws invalid_argument for a form without meaning.
  virtual void check_form(const ReduceForm& form) const = 0;

  // Queues are shared by all who ask for the same number; numbers beyond queues() begin again.
  virtual Queue& queue(std::size_t number) = 0;
  virtual std::size_t queues() const noexcept = 0;

  virtual std::unique_ptr<Mark> make_mark() = 0;

  // Throws internal if the device has failed: marks of others do not tell.
  virtual void check() = 0;

  // Of a stream of the caller's on this device: the mark stands for what it was given so far.
  virtual void record(void* stream, Mark& mark) = 0;
  // What the caller gives it from now on begins when the mark is reached.
  virtual void let_wait(void* stream, Mark& mark) = 0;
};

}  // namespace onesum::engine
