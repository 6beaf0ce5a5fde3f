#include "cli/output.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include <fcntl.h>
#include <unistd.h>

#include <onesum/error.h>

#include "base/text.h"

namespace onesum::cli {
namespace {

struct CloseFile {
  void operator()(std::FILE* file) const noexcept { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

[[noreturn]] void fail(const std::string& what, int error) {
  const ErrorCode code = error == ENOSPC ? ErrorCode::kResourceExhausted : ErrorCode::kInvalidArgument;
  throw Error(code, what + ": " + std::strerror(error));
}

bool write_all(std::FILE* file, std::string_view text) {
  return std::fwrite(text.data(), 1, text.size(), file) == text.size() && std::fflush(file) == 0;
}

}  // namespace

void occupy_standard_descriptors() noexcept {
  for (;;) {
    const int fd = open("/dev/null", O_PATH | O_CLOEXEC);
    if (fd > STDERR_FILENO) close(fd);
    if (fd < 0 || fd > STDERR_FILENO) return;
  }
}

void print(std::string_view text) {
  errno = 0;
  if (write_all(stdout, text)) return;
  const int error = errno;
  if (error == EPIPE) throw ReaderGone{};
  fail("cannot write to standard output", error);
}

void print_line(std::string_view text) {
  std::string line(text);
  line += '\n';
  print(line);
}

void write_file(const std::string& path, std::string_view text) {
  errno = 0;
  File file(std::fopen(path.c_str(), "wb"));
  const bool written = file && write_all(file.get(), text);
  if (!written || std::fclose(file.release()) != 0) fail("cannot write " + quoted(path), errno);
}

std::string read_file(const std::string& path, std::size_t max_bytes) {
  errno = 0;
  const File file(std::fopen(path.c_str(), "rb"));
  if (!file) fail("cannot read " + quoted(path), errno);
  std::string text;
  char part[4096];
  while (const std::size_t count = std::fread(part, 1, sizeof part, file.get())) {
    text.append(part, count);
    if (text.size() > max_bytes) {
      throw Error(ErrorCode::kInvalidArgument,
                  quoted(path) + " has more than " + std::to_string(max_bytes) + " bytes");
    }
  }
  if (std::ferror(file.get()) != 0) fail("cannot read " + quoted(path), errno);
  return text;
}

}  // namespace onesum::cli
