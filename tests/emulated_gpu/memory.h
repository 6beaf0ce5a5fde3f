// All memory that the emulated GPU knows: device, pinned, registered. The world's lock guards it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "emulated_gpu/mapping.h"
#include "emulated_gpu/operation.h"
#include "emulated_gpu/pinned_pages.h"
#include "emulated_gpu/place.h"
#include "emulated_gpu/race_detector.h"

namespace onesum::emulated {

enum class MemoryKind { kDevice, kPinned, kRegistered };

struct Allocation {
  MemoryKind kind;
  int device;  // that owns it, or was current
  std::uintptr_t begin;
  std::size_t bytes;  // as asked for
  Place where;
  std::unique_ptr<DoubleMapping> mapping;  // none of registered memory
  std::optional<PinnedPages> pages;        // of pinned memory
  History history;

  bool holds(const Range& range) const { return begin <= range.begin && range.end() <= begin + bytes; }
  // Where the emulated GPU finds what the tested program calls `address`.
  std::byte* alias_of(std::uintptr_t address) const;
  void write(Text& text) const;
  std::string text() const { return text_of(*this); }
};

class Memory {
 public:
  // Null if the system has no memory.
  std::shared_ptr<Allocation> allocate(MemoryKind kind, int device, std::size_t bytes);
  std::shared_ptr<Allocation> enlist(int device, void* address, std::size_t bytes);

  // The allocation around the address, null if it is not known.
  std::shared_ptr<Allocation> find(const void* address) const;
  std::shared_ptr<Allocation> find_overlap(const Range& range) const;
  // The one that was around the address before it was freed, null if none is remembered.
  const Allocation* find_freed(const void* address) const;
  // What is known of an address that nothing was found for.
  std::string obituary(const void* address) const;

  // Its addresses stay taken for a while, so that whoever still uses them is found out.
  void release(const std::shared_ptr<Allocation>& allocation);

  // Opens pinned pages whose operations are all in `known`.
  void open_pages(const Clock& known);

  std::size_t count(MemoryKind kind) const;
  std::size_t bytes(MemoryKind kind) const;
  std::size_t device_bytes(int device) const;
  const auto& all() const { return allocations_; }

 private:
  using ByAddress = std::map<std::uintptr_t, std::shared_ptr<Allocation>>;

  ByAddress allocations_;
  std::deque<std::shared_ptr<Allocation>> buried_;
};

}  // namespace onesum::emulated
