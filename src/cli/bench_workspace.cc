#include "cli/bench_workspace.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include <sys/mman.h>

#include <onesum/error.h>

#include "api/copies.h"
#include "base/amounts.h"
#include "cli/machine.h"

namespace onesum::cli {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;

std::size_t rounded_up(std::size_t bytes, std::size_t unit) { return (bytes + unit - 1) / unit * unit; }

std::size_t arena_bytes_of(const Workload& workload, DType dtype) {
  std::size_t bytes = 0;
  for (const Shape& shape : workload.shapes) bytes += rounded_up(shape.elements() * size_of(dtype), kLine);
  return bytes;
}

template <class Results>
Difference difference_in(const Pattern& pattern, const Results& results) {
  Difference all;
  for (std::size_t t = 0; t < results.size(); ++t) {
    for (std::size_t d = 0; d < results[t].size(); ++d) {
      const Tensor& tensor = results[t].tensor(d);
      const Tensor here = api::on_host(tensor);
      const std::span found(static_cast<const std::byte*>(here.memory()), here.bytes());
      Workspace::add(pattern.difference(found, t), t, tensor, all);
    }
  }
  return all;
}

// Calls write(memory) with what is then the tensor's contents.
template <class Write>
void write_to(const Tensor& tensor, Write write) {
  const bool is_here = api::is_on_host(tensor);
  const Tensor here = is_here ? tensor : Tensor::empty(tensor.dtype(), tensor.shape(), "CPU:0");
  write(std::span(static_cast<std::byte*>(here.memory()), here.bytes()));
  if (!is_here) api::copy(here, tensor);
}

}  // namespace

std::size_t Workload::elements() const {
  std::size_t sum = 0;
  for (const Shape& shape : shapes) sum += shape.elements();
  return sum;
}

std::size_t Workload::bytes() const { return elements() * size_of(dtype); }

std::size_t Workload::needed_bytes() const {
  return (arena_bytes_of(*this, dtype) + arena_bytes_of(*this, result_dtype(op, dtype))) * own_replicas();
}

void refuse_too_large(const Workload& workload, std::size_t processes_here) {
  const std::size_t needed = workload.needed_bytes() * processes_here;
  const auto available = available_memory();
  if (!available || needed <= *available) return;
  throw Error(ErrorCode::kResourceExhausted, "the bench needs " + format_bytes(needed) + " for " +
                                                 std::to_string(workload.own_replicas() * processes_here) +
                                                 " devices, values and results; " + format_bytes(*available) +
                                                 " are available");
}

void Workspace::Free::operator()(std::byte* memory) const noexcept { std::free(memory); }

Workspace::Workspace(Workload workload) : workload_(std::move(workload)) {
  const DType result = result_dtype(workload_.op, workload_.dtype);
  value_arenas_.bytes = arena_bytes_of(workload_, workload_.dtype);
  result_arenas_.bytes = arena_bytes_of(workload_, result);
  for (Arenas* const arenas : {&value_arenas_, &result_arenas_}) {
    workload_.gpus == 0 ? allocate(*arenas) : allocate_on_gpus(*arenas);
  }
  values_ = tensors_in(value_arenas_, workload_.dtype);
  results_ = tensors_in(result_arenas_, result);
}

void Workspace::allocate(Arenas& arenas) {
  const std::size_t alignment = workload_.huge_pages ? kHugePage : kLine;
  const std::size_t bytes = rounded_up(arenas.bytes + 1, alignment);
  for (std::size_t d = 0; d < workload_.own_replicas(); ++d) {
    auto* memory = static_cast<std::byte*>(std::aligned_alloc(alignment, bytes));
    if (memory == nullptr) {
      throw Error(ErrorCode::kResourceExhausted, "the bench cannot allocate " + format_bytes(bytes));
    }
    arenas.memory.emplace_back(memory);
    arenas.starts.push_back(memory);
    // The advice may be refused (a kernel without huge pages); the times then say so.
    if (workload_.huge_pages) static_cast<void>(madvise(memory, bytes, MADV_HUGEPAGE));
    std::memset(memory, 0, bytes);
  }
}

void Workspace::allocate_on_gpus(Arenas& arenas) {
  const std::size_t bytes = rounded_up(arenas.bytes + 1, kLine);
  for (std::size_t d = 0; d < workload_.own_replicas(); ++d) {
    const Tensor memory =
        Tensor::empty(DType::kUInt8, {static_cast<std::int64_t>(bytes)}, workload_.own_device(d));
    arenas.starts.push_back(static_cast<std::byte*>(memory.memory()));
    arenas.gpu_memory.push_back(memory);
  }
}

std::vector<PerReplica> Workspace::tensors_in(const Arenas& arenas, DType dtype) const {
  std::vector<PerReplica> tensors;
  std::size_t offset = 0;
  for (const Shape& shape : workload_.shapes) {
    std::vector<Tensor> replicas;
    for (std::size_t d = 0; d < workload_.own_replicas(); ++d) {
      replicas.push_back(Tensor::borrow(arenas.starts[d] + offset, dtype, shape, workload_.own_device(d)));
    }
    tensors.emplace_back(std::move(replicas));
    offset += rounded_up(shape.elements() * size_of(dtype), kLine);
  }
  return tensors;
}

void Workspace::reset(const Pattern& pattern) {
  for (std::size_t t = 0; t < values_.size(); ++t) {
    for (std::size_t d = 0; d < workload_.own_replicas(); ++d) {
      write_to(values_[t].tensor(d),
               [&](std::span<std::byte> memory) { pattern.fill(memory, workload_.first_own() + d, t); });
      write_to(results_[t].tensor(d),
               [](std::span<std::byte> memory) { std::ranges::fill(memory, std::byte{0x5a}); });
    }
  }
}

std::vector<std::byte> Workspace::bytes_of(const Tensor& tensor, std::size_t first, std::size_t elements) {
  const Tensor here = api::on_host(tensor);
  const std::size_t size = size_of(tensor.dtype());
  const auto* const memory = static_cast<const std::byte*>(here.memory()) + first * size;
  return {memory, memory + elements * size};
}

void Workspace::add(const Difference& one, std::size_t number, const Tensor& tensor, Difference& all) {
  if (one.elements != 0 && all.elements == 0) {
    all.first = "tensor " + std::to_string(number) + " on " + tensor.device().to_string() + ": " + one.first;
  }
  all.elements += one.elements;
}

Difference Workspace::difference(const Pattern& pattern, std::span<const PerReplica> results) {
  return difference_in(pattern, results);
}

Difference Workspace::difference(const Pattern& pattern, std::span<const Mirrored> results) {
  return difference_in(pattern, results);
}

}  // namespace onesum::cli
