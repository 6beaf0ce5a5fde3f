#include "emulated_gpu/fault.h"

#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <mutex>

#include <sched.h>
#include <ucontext.h>
#include <unistd.h>

#include "emulated_gpu/text.h"
#include "emulated_gpu/world.h"

namespace onesum::emulated {
namespace {

struct sigaction before;

[[noreturn]] void die(Text& text) {
  text.add("\n");
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
  std::abort();
}

// Where the machine does not say, a write: it is forbidden wherever a read is.
bool is_write([[maybe_unused]] const void* context) {
#if defined(__x86_64__)
  constexpr greg_t kWriteBit = 2;
  return (static_cast<const ucontext_t*>(context)->uc_mcontext.gregs[REG_ERR] & kWriteBit) != 0;
#else
  return true;
#endif
}

// The faulting thread may be one of ours, inside the lock: then there is nothing to look up.
bool lock_soon(std::mutex& mutex) {
  for (int turn = 0; turn < 100000; ++turn) {
    if (mutex.try_lock()) return true;
    sched_yield();
  }
  return false;
}

// Whether the access may be tried again.
bool explain(const void* address, bool writes) {
  World& all = world();
  if (!lock_soon(all.mutex)) return false;
  const std::lock_guard lock(all.mutex, std::adopt_lock);
  Text text;
  text.add("emulated GPU: the host %s %p", writes ? "writes" : "reads", address);
  const std::shared_ptr<Allocation> allocation = all.memory.find(address);
  if (allocation == nullptr) {
    const Allocation* const freed = all.memory.find_freed(address);
    if (freed == nullptr) return false;
    text.add(", which was freed: ");
    freed->write(text);
    die(text);
  }
  if (allocation->kind == MemoryKind::kDevice) {
    text.add(": ");
    allocation->write(text);
    die(text);
  }
  if (!allocation->pages) return false;
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  if (const Access* guard = allocation->pages->guard(at, writes)) {
    text.add(" of pinned memory while, as far as it knows, ");
    guard->write(text);
    die(text);
  }
  allocation->pages->tolerate(at);
  return true;
}

void pass_on(int signal, siginfo_t* info, void* context) {
  if ((before.sa_flags & SA_SIGINFO) != 0) {
    before.sa_sigaction(signal, info, context);
  } else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
    before.sa_handler(signal);
  } else {
    sigaction(SIGSEGV, &before, nullptr);  // and the access faults again
  }
}

void handle(int signal, siginfo_t* info, void* context) {
  if (!explain(info->si_addr, is_write(context))) pass_on(signal, info, context);
}

}  // namespace

void install_fault_handler() {
  struct sigaction action{};
  action.sa_sigaction = handle;
  action.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  sigaction(SIGSEGV, &action, &before);
}

}  // namespace onesum::emulated
