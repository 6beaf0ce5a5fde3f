#include "counting.h"

#include <atomic>
#include <cerrno>
#include <cstdlib>

#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define ONESUM_TEST_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define ONESUM_TEST_SANITIZED 1
#endif
#endif

namespace onesum::testing {
namespace {

// Relaxed: a call under test starts and ends on the thread that counts, and has waited for its helpers by
// then.
std::atomic<bool> is_counting = false;
std::atomic<std::size_t> calls = 0;
std::atomic<std::size_t> bytes = 0;

[[maybe_unused]] void note(std::size_t size) noexcept {
  if (!is_counting.load(std::memory_order_relaxed)) return;
  calls.fetch_add(1, std::memory_order_relaxed);
  bytes.fetch_add(size, std::memory_order_relaxed);
}

}  // namespace

void start_counting() noexcept {
  calls = 0;
  bytes = 0;
  is_counting = true;
}

Allocated stop_counting() noexcept {
  is_counting = false;
  return {calls, bytes};
}

bool is_counting_possible() noexcept {
#if defined(ONESUM_TEST_SANITIZED)
  return false;
#else
  return true;
#endif
}

}  // namespace onesum::testing

#if !defined(ONESUM_TEST_SANITIZED)

#define ONESUM_TEST_REPLACES __attribute__((visibility("default")))

// glibc's own, under the names it keeps for those who replace the public ones. operator new is made of malloc
// and aligned_alloc.
extern "C" {
void* __libc_malloc(std::size_t size);
void* __libc_calloc(std::size_t count, std::size_t size);
void* __libc_realloc(void* memory, std::size_t size);
void* __libc_memalign(std::size_t alignment, std::size_t size);

ONESUM_TEST_REPLACES void* malloc(std::size_t size) noexcept {
  onesum::testing::note(size);
  return __libc_malloc(size);
}

ONESUM_TEST_REPLACES void* calloc(std::size_t count, std::size_t size) noexcept {
  onesum::testing::note(count * size);
  return __libc_calloc(count, size);
}

ONESUM_TEST_REPLACES void* realloc(void* memory, std::size_t size) noexcept {
  onesum::testing::note(size);
  return __libc_realloc(memory, size);
}

ONESUM_TEST_REPLACES void* memalign(std::size_t alignment, std::size_t size) noexcept {
  onesum::testing::note(size);
  return __libc_memalign(alignment, size);
}

ONESUM_TEST_REPLACES void* aligned_alloc(std::size_t alignment, std::size_t size) noexcept {
  return memalign(alignment, size);
}

ONESUM_TEST_REPLACES int posix_memalign(void** result, std::size_t alignment, std::size_t size) noexcept {
  *result = memalign(alignment, size);
  return *result == nullptr ? ENOMEM : 0;
}

// Fresh pages, past all of the above.
ONESUM_TEST_REPLACES void* mmap(void* address, std::size_t length, int protection, int flags, int file,
                                off_t offset) noexcept {
  onesum::testing::note(length);
  // NOLINTNEXTLINE(performance-no-int-to-ptr): that is what the system call gives
  return reinterpret_cast<void*>(syscall(SYS_mmap, address, length, protection, flags, file, offset));
}
}

#endif
