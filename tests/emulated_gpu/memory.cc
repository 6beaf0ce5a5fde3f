#include "emulated_gpu/memory.h"

#include <utility>

namespace onesum::emulated {
namespace {

constexpr std::size_t kMostBuried = 512;

const char* name_of(MemoryKind kind) {
  switch (kind) {
    case MemoryKind::kDevice:
      return "device memory";
    case MemoryKind::kPinned:
      return "pinned memory";
    default:
      return "registered memory";
  }
}

}  // namespace

std::byte* Allocation::alias_of(std::uintptr_t address) const {
  if (mapping == nullptr) return reinterpret_cast<std::byte*>(address);  // NOLINT(performance-no-int-to-ptr)
  return mapping->alias() + (address - begin);
}

void Allocation::write(Text& text) const {
  text.add("%s", name_of(kind));
  if (kind == MemoryKind::kDevice) text.add(" of device %d", device);
  text.add(" [0x%zx, 0x%zx) of %zu bytes, allocated from ", static_cast<std::size_t>(begin),
           static_cast<std::size_t>(begin + bytes), bytes);
  where.write(text);
}

std::shared_ptr<Allocation> Memory::allocate(MemoryKind kind, int device, std::size_t bytes) {
  auto mapping = std::make_unique<DoubleMapping>(bytes, kind == MemoryKind::kPinned);
  if (!mapping->is_mapped()) return nullptr;
  auto result = std::make_shared<Allocation>();
  result->kind = kind;
  result->device = device;
  result->begin = reinterpret_cast<std::uintptr_t>(mapping->address());
  result->bytes = bytes;
  result->where = Place::of_caller();
  result->mapping = std::move(mapping);
  if (kind == MemoryKind::kPinned) result->pages.emplace(*result->mapping);
  allocations_.emplace(result->begin, result);
  return result;
}

std::shared_ptr<Allocation> Memory::enlist(int device, void* address, std::size_t bytes) {
  auto result = std::make_shared<Allocation>();
  result->kind = MemoryKind::kRegistered;
  result->device = device;
  result->begin = reinterpret_cast<std::uintptr_t>(address);
  result->bytes = bytes;
  result->where = Place::of_caller();
  allocations_.emplace(result->begin, result);
  return result;
}

std::shared_ptr<Allocation> Memory::find(const void* address) const {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  auto behind = allocations_.upper_bound(at);
  if (behind == allocations_.begin()) return nullptr;
  const std::shared_ptr<Allocation>& allocation = std::prev(behind)->second;
  const std::size_t bytes = allocation->mapping ? allocation->mapping->bytes() : allocation->bytes;
  return at - allocation->begin < bytes ? allocation : nullptr;
}

std::shared_ptr<Allocation> Memory::find_overlap(const Range& range) const {
  auto behind = allocations_.lower_bound(range.end());
  if (behind == allocations_.begin()) return nullptr;
  const std::shared_ptr<Allocation>& allocation = std::prev(behind)->second;
  return allocation->begin + allocation->bytes > range.begin ? allocation : nullptr;
}

const Allocation* Memory::find_freed(const void* address) const {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  for (const std::shared_ptr<Allocation>& allocation : buried_) {
    if (at - allocation->begin < allocation->mapping->bytes()) return allocation.get();
  }
  return nullptr;
}

std::string Memory::obituary(const void* address) const {
  const Allocation* const freed = find_freed(address);
  return freed == nullptr ? "is not known" : "was freed: " + freed->text();
}

void Memory::release(const std::shared_ptr<Allocation>& allocation) {
  allocations_.erase(allocation->begin);
  if (allocation->mapping == nullptr) return;
  allocation->mapping->bury();
  buried_.push_back(allocation);
  if (buried_.size() > kMostBuried) buried_.pop_front();
}

void Memory::open_pages(const Clock& known) {
  for (const auto& [begin, allocation] : allocations_) {
    if (allocation->pages) allocation->pages->open(known);
  }
}

std::size_t Memory::count(MemoryKind kind) const {
  std::size_t result = 0;
  for (const auto& [begin, allocation] : allocations_) result += allocation->kind == kind ? 1 : 0;
  return result;
}

std::size_t Memory::bytes(MemoryKind kind) const {
  std::size_t result = 0;
  for (const auto& [begin, allocation] : allocations_)
    result += allocation->kind == kind ? allocation->bytes : 0;
  return result;
}

std::size_t Memory::device_bytes(int device) const {
  std::size_t result = 0;
  for (const auto& [begin, allocation] : allocations_) {
    if (allocation->kind == MemoryKind::kDevice && allocation->device == device) result += allocation->bytes;
  }
  return result;
}

}  // namespace onesum::emulated
