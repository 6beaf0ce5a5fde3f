#include "cli/output_queue.h"

#include <algorithm>
#include <cerrno>
#include <climits>

#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

namespace onesum::cli {
namespace {

constexpr std::size_t kFullBytes = std::size_t{1} << 20;
constexpr std::size_t kFilePieceBytes = std::size_t{1} << 20;

bool is_regular(int fd) noexcept {
  struct stat status{};
  return fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
}

// At most `most` bytes, up to the end of a line if there is one.
std::size_t piece_of(std::string_view text, std::size_t most) {
  if (text.size() <= most) return text.size();
  const std::size_t end = text.rfind('\n', most - 1);
  return end == std::string_view::npos ? most : end + 1;
}

}  // namespace

OutputQueue::OutputQueue(int fd) noexcept
    : fd_(fd), piece_bytes_(is_regular(fd) ? kFilePieceBytes : PIPE_BUF) {}

bool OutputQueue::is_full() const noexcept { return text_.size() - written_ >= kFullBytes; }

void OutputQueue::append(std::string_view lines) {
  if (error_ == 0) text_ += lines;
}

void OutputQueue::write_some() {
  while (written_ < text_.size() && is_ready()) {
    const std::string_view rest = std::string_view(text_).substr(written_);
    const ssize_t count = ::write(fd_, rest.data(), piece_of(rest, piece_bytes_));
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (count < 0) {
      error_ = errno;
      written_ = text_.size();
      break;
    }
    written_ += static_cast<std::size_t>(count);
  }
  drop_written();
}

bool OutputQueue::is_ready() const noexcept {
  pollfd entry{fd_, POLLOUT, 0};
  return poll(&entry, 1, 0) > 0;
}

// Keeps the last byte of a line that is not finished, and waits with the rest until it is worth moving.
void OutputQueue::drop_written() {
  if (written_ == text_.size()) {
    text_.clear();
    written_ = 0;
  } else if (written_ > kFullBytes) {
    text_.erase(0, written_ - 1);
    written_ = 1;
  }
}

bool are_same_file(int one, int other) noexcept {
  struct stat first{};
  struct stat second{};
  return fstat(one, &first) == 0 && fstat(other, &second) == 0 && first.st_dev == second.st_dev &&
         first.st_ino == second.st_ino;
}

}  // namespace onesum::cli
