// Memory with two addresses: one that is handed out, whose pages can be closed to the host, and an alias
// through which the emulated GPU reads and writes.
#pragma once

#include <cstddef>
#include <cstdint>

namespace onesum::emulated {

std::size_t page_bytes();

class DoubleMapping {
 public:
  // Every byte is 0xff, which is NaN in every float type. `is_open` says whether the host may use the first
  // address. Null addresses where the system has no memory.
  DoubleMapping(std::size_t bytes, bool is_open);
  ~DoubleMapping();
  DoubleMapping(const DoubleMapping&) = delete;
  DoubleMapping& operator=(const DoubleMapping&) = delete;

  std::byte* address() const { return address_; }
  std::byte* alias() const { return alias_; }
  std::size_t bytes() const { return bytes_; }  // whole pages
  bool is_mapped() const { return alias_ != nullptr; }

  void protect(std::size_t first_page, std::size_t pages, int protection);
  // Gives the pages back and closes the address, which stays taken.
  void bury();

 private:
  std::size_t bytes_;
  std::byte* address_ = nullptr;
  std::byte* alias_ = nullptr;
};

}  // namespace onesum::emulated
