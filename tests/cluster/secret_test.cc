// Secrets are long enough, and their files are their owner's alone.
#include "cluster/secret.h"

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cluster/meetings.h"
#include "support/expect_error.h"

namespace onesum::cluster {
namespace {

namespace fs = std::filesystem;
using testing::bytes_of;
using testing::expect_invalid;

constexpr std::string_view kHowTo = "head -c 32 /dev/urandom | base64 > FILE; chmod 600 FILE";

// A file in a folder of its own, removed at the end.
class SecretFile : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "onesum-secret-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }

  fs::path file(const std::string& text, mode_t mode) {
    const fs::path path = folder_ / "secret";
    fs::remove(path);
    std::ofstream(path) << text;
    EXPECT_EQ(::chmod(path.c_str(), mode), 0);
    return path;
  }

  fs::path folder_;
};

std::vector<std::byte> key_of(const Secret& secret) { return {secret.key().begin(), secret.key().end()}; }

TEST(SecretTest, SpacesAroundItDoNotCount) {
  EXPECT_EQ(key_of(Secret::from_text(" 0123456789 abcdef\r\n")), bytes_of("0123456789 abcdef"));
}

TEST(SecretTest, AShortOneIsRefusedWithoutShowingIt) {
  for (const char* text : {"", "  \n", "hunter2 hunter2"}) {
    expect_invalid([&] { Secret::from_text(text); }, {"expected at least 16", kHowTo});
    try {
      Secret::from_text(text);
    } catch (const Error& error) {
      EXPECT_EQ(std::string_view(error.what()).find("hunter2"), std::string_view::npos);
    }
  }
}

TEST_F(SecretFile, IsRead) {
  for (const mode_t mode : {0600U, 0400U, 0700U}) {
    EXPECT_EQ(key_of(Secret::from_file(file("0123456789abcdef\n", mode))), bytes_of("0123456789abcdef"));
  }
}

TEST_F(SecretFile, MustBeClosedToOthers) {
  for (const mode_t mode : {0640U, 0604U, 0660U, 0601U, 0610U, 0602U, 0644U, 0777U}) {
    std::array<char, 8> text{};
    std::snprintf(text.data(), text.size(), "0%o", mode);
    expect_invalid([&] { Secret::from_file(file("0123456789abcdef", mode)); },
                   {folder_.string(), "is open to other users", text.data(), "chmod 600"});
  }
}

TEST_F(SecretFile, MustHoldASecret) {
  expect_invalid([&] { Secret::from_file(file("short\n", 0600)); },
                 {"holds 5 characters, expected at least 16"});
  expect_invalid([&] { Secret::from_file(file(std::string(5000, 'x'), 0600)); },
                 {"is longer than 4096 bytes"});
  expect_invalid([&] { Secret::from_file(folder_); }, {"is no regular file"});
  expect_invalid([&] { Secret::from_file(folder_ / "none"); }, {"cannot be opened: No such file", kHowTo});
  const fs::path pipe = folder_ / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  expect_invalid([&] { Secret::from_file(pipe); }, {"is no regular file"});
}

TEST_F(SecretFile, MustBelongToTheUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "SKIPPED: only root can make a file of another user";
  const fs::path path = file("0123456789abcdef", 0600);
  ASSERT_EQ(::chown(path.c_str(), 65534, 65534), 0);
  expect_invalid([&] { Secret::from_file(path); }, {"belongs to user 65534, expected user 0"});
}

std::string hex(const Digest& digest) {
  std::string text;
  for (const std::byte byte : digest) {
    std::array<char, 3> two{};
    std::snprintf(two.data(), two.size(), "%02x", std::to_integer<unsigned>(byte));
    text += two.data();
  }
  return text;
}

TEST(SecretTest, SignaturesAreHmacSha256) {  // RFC 4231, test case 2; FIPS 180-2
  EXPECT_EQ(hex(sign(bytes_of("Jefe"), bytes_of("what do ya want for nothing?"))),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(hex(digest_of(bytes_of("abc"))),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(hex(sign({}, {})), "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad");
}

TEST(SecretTest, DigestsAreComparedWhole) {
  Digest a{};
  for (std::size_t i = 0; i < a.size(); ++i) {
    Digest b = a;
    EXPECT_TRUE(is_same(a, b));
    b[i] = std::byte{1};
    EXPECT_FALSE(is_same(a, b));
  }
}

TEST(SecretTest, RandomBytesDiffer) {
  Digest a{};
  Digest b{};
  fill_with_random(a);
  fill_with_random(b);
  EXPECT_NE(a, b);
}

}  // namespace
}  // namespace onesum::cluster
