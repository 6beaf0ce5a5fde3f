#include "emulated_gpu_self/child.h"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <utility>

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace onesum::testing {
namespace {

void write_all(int fd, const std::string& text) {
  for (std::size_t at = 0; at < text.size();) {
    const ssize_t written = ::write(fd, text.data() + at, text.size() - at);
    if (written <= 0) return;
    at += static_cast<std::size_t>(written);
  }
}

std::string read_all(int fd) {
  std::string result(static_cast<std::size_t>(::lseek(fd, 0, SEEK_END)), '\0');
  [[maybe_unused]] const ssize_t read = ::pread(fd, result.data(), result.size(), 0);
  return result;
}

[[noreturn]] void run(const Environment& environment, const Body& body, int text, int errors) {
  ::dup2(errors, STDERR_FILENO);
  ::setenv("EMULATED_GPU_DEVICES", "2", 0);
  for (const auto& [name, value] : environment) ::setenv(name.c_str(), value.c_str(), 1);
  std::string result;
  try {
    result = body();
  } catch (const std::exception& error) {
    result = std::string("threw: ") + error.what();
  }
  write_all(text, result);
  std::exit(0);
}

}  // namespace

Child::Child(const Environment& environment, const Body& body)
    : text_(memfd_create("text", MFD_CLOEXEC)), errors_(memfd_create("errors", MFD_CLOEXEC)) {
  std::fflush(nullptr);
  process_ = ::fork();
  if (process_ == 0) run(environment, body, text_, errors_);
}

Child::~Child() {
  if (process_ > 0) {
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
  }
  ::close(text_);
  ::close(errors_);
}

Ended Child::wait() {
  int status = 0;
  ::waitpid(std::exchange(process_, -1), &status, 0);
  return {.text = read_all(text_),
          .errors = read_all(errors_),
          .signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0,
          .code = WIFEXITED(status) ? WEXITSTATUS(status) : -1};
}

Ended in_child(const Environment& environment, const Body& body) { return Child(environment, body).wait(); }

void check(cudaError_t error) {
  if (error != cudaSuccess) throw std::runtime_error(cudaGetErrorName(error));
}

void check(ncclResult_t error) {
  if (error != ncclSuccess) throw std::runtime_error(ncclGetErrorString(error));
}

StreamOwner::StreamOwner(int device) {
  check(cudaSetDevice(device));
  check(cudaStreamCreateWithFlags(&get, cudaStreamNonBlocking));
  check(cudaSetDevice(0));
}

StreamOwner::~StreamOwner() { cudaStreamDestroy(get); }

EventOwner::EventOwner(int device, unsigned flags) {
  check(cudaSetDevice(device));
  check(cudaEventCreateWithFlags(&get, flags));
  check(cudaSetDevice(0));
}

EventOwner::~EventOwner() { cudaEventDestroy(get); }

}  // namespace onesum::testing
