#include "cluster/secret.h"

#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <sys/stat.h>
#include <unistd.h>

#include <onesum/error.h>

#include "base/fd.h"
#include "base/text.h"

namespace onesum::cluster {
namespace {

constexpr std::size_t kMostFileBytes = 4096;

[[noreturn]] void refuse_file(const std::filesystem::path& path, const std::string& reason) {
  throw Error(ErrorCode::kInvalidArgument, fmt::format("the secret's file {} {}; {}", quoted(path.string()),
                                                       reason, how_to_make_a_secret()));
}

[[noreturn]] void throw_crypto(const char* what) {
  throw Error(ErrorCode::kInternal, fmt::format("OpenSSL could not make {}", what));
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpaces = " \t\r\n";
  const std::size_t begin = text.find_first_not_of(kSpaces);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpaces) - begin + 1);
}

// The descriptor's, not the path's: the file that is read is the one that was looked at.
void check_is_ours(const Fd& file, const std::filesystem::path& path) {
  struct stat status{};
  if (::fstat(file.get(), &status) != 0)
    refuse_file(path, fmt::format("cannot be looked at: {}", std::strerror(errno)));
  if (!S_ISREG(status.st_mode)) refuse_file(path, "is no regular file");
  if (status.st_uid != ::geteuid()) {
    refuse_file(path, fmt::format("belongs to user {}, expected user {}, who runs this process",
                                  status.st_uid, ::geteuid()));
  }
  if ((status.st_mode & 077U) != 0) {
    refuse_file(path,
                fmt::format("is open to other users (mode {:04o}, expected 0600)", status.st_mode & 07777U));
  }
}

std::string contents_of(const Fd& file, const std::filesystem::path& path) {
  std::string text(kMostFileBytes + 1, '\0');
  std::size_t size = 0;
  while (size < text.size()) {
    const ssize_t count = ::read(file.get(), text.data() + size, text.size() - size);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) refuse_file(path, fmt::format("cannot be read: {}", std::strerror(errno)));
    if (count == 0) break;
    size += static_cast<std::size_t>(count);
  }
  if (size > kMostFileBytes) refuse_file(path, fmt::format("is longer than {} bytes", kMostFileBytes));
  text.resize(size);
  return text;
}

}  // namespace

Secret Secret::from_text(std::string_view text) {
  const std::string_view word = trimmed(text);
  if (word.size() < kFewestCharacters) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("the secret has {} characters, expected at least {}; {}", word.size(),
                            kFewestCharacters, how_to_make_a_secret()));
  }
  const auto bytes = std::as_bytes(std::span(word));
  return Secret(std::vector<std::byte>(bytes.begin(), bytes.end()));
}

Secret Secret::from_file(const std::filesystem::path& path) {
  // A pipe must not make this wait.
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  if (!file) refuse_file(path, fmt::format("cannot be opened: {}", std::strerror(errno)));
  check_is_ours(file, path);
  std::string text = contents_of(file, path);
  const auto erase = [](std::string* erased) { OPENSSL_cleanse(erased->data(), erased->size()); };
  const std::unique_ptr<std::string, decltype(erase)> erased_at_end(&text, erase);
  if (trimmed(text).size() < kFewestCharacters) {
    refuse_file(path, fmt::format("holds {} characters, expected at least {}", trimmed(text).size(),
                                  kFewestCharacters));
  }
  return from_text(text);
}

Secret::~Secret() {
  if (!key_.empty()) OPENSSL_cleanse(key_.data(), key_.size());
}

std::string_view how_to_make_a_secret() noexcept {
  return "make one for all workers with: head -c 32 /dev/urandom | base64 > FILE; chmod 600 FILE; "
         "export ONESUM_SECRET_FILE=FILE";
}

Digest sign(std::span<const std::byte> key, std::span<const std::byte> message) {
  Digest result;
  unsigned length = 0;
  const auto* text = reinterpret_cast<const unsigned char*>(message.data());
  // An empty key is still a key, not "the one of the last time".
  const void* key_bytes = key.empty() ? static_cast<const void*>("") : key.data();
  if (HMAC(EVP_sha256(), key_bytes, static_cast<int>(key.size()), text, message.size(),
           reinterpret_cast<unsigned char*>(result.data()), &length) == nullptr ||
      length != result.size()) {
    throw_crypto("an HMAC");
  }
  return result;
}

Digest digest_of(std::span<const std::byte> bytes) {
  Digest result;
  unsigned length = 0;
  if (EVP_Digest(bytes.data(), bytes.size(), reinterpret_cast<unsigned char*>(result.data()), &length,
                 EVP_sha256(), nullptr) != 1 ||
      length != result.size()) {
    throw_crypto("a SHA-256");
  }
  return result;
}

bool is_same(const Digest& a, const Digest& b) noexcept {
  return CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

void fill_with_random(std::span<std::byte> bytes) {
  if (RAND_bytes(reinterpret_cast<unsigned char*>(bytes.data()), static_cast<int>(bytes.size())) != 1) {
    throw_crypto("random numbers");
  }
}

}  // namespace onesum::cluster
