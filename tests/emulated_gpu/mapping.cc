#include "emulated_gpu/mapping.h"

#include <algorithm>
#include <cstring>

#include <sys/mman.h>
#include <unistd.h>

namespace onesum::emulated {
namespace {

std::byte* map(int fd, std::size_t bytes, int protection) {
  void* const result = mmap(nullptr, bytes, protection, MAP_SHARED, fd, 0);
  return result == MAP_FAILED ? nullptr : static_cast<std::byte*>(result);
}

}  // namespace

std::size_t page_bytes() {
  static const auto result = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return result;
}

DoubleMapping::DoubleMapping(std::size_t bytes, bool is_open)
    : bytes_((std::max<std::size_t>(bytes, 1) + page_bytes() - 1) / page_bytes() * page_bytes()) {
  const int fd = memfd_create("emulated_gpu", MFD_CLOEXEC);
  if (fd < 0) return;
  if (ftruncate(fd, static_cast<off_t>(bytes_)) == 0) {
    address_ = map(fd, bytes_, is_open ? PROT_READ | PROT_WRITE : PROT_NONE);
    if (address_ != nullptr) alias_ = map(fd, bytes_, PROT_READ | PROT_WRITE);
  }
  close(fd);
  if (alias_ == nullptr) return;
  std::memset(alias_, 0xff, bytes_);
}

DoubleMapping::~DoubleMapping() {
  if (address_ != nullptr) munmap(address_, bytes_);
  if (alias_ != nullptr) munmap(alias_, bytes_);
}

void DoubleMapping::protect(std::size_t first_page, std::size_t pages, int protection) {
  mprotect(address_ + first_page * page_bytes(), pages * page_bytes(), protection);
}

void DoubleMapping::bury() {
  madvise(alias_, bytes_, MADV_REMOVE);
  mprotect(address_, bytes_, PROT_NONE);
}

}  // namespace onesum::emulated
