// The launcher's side is tests/cli/run_test.cc.
#include "base/worker_report.h"

#include <array>
#include <string>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"

namespace onesum {
namespace {

TEST(WorkerReport, IsOneLineOfJson) {
  EXPECT_EQ(to_line({}), "{\"calls\":0,\"bytes\":0,\"waited_s\":0}\n");
  EXPECT_EQ(
      to_line({12, 4096, 0.25, 3, 0.125}),
      "{\"calls\":12,\"bytes\":4096,\"waited_s\":0.25,\"most_waited_for\":3,\"waited_for_it_s\":0.125}\n");
}

TEST(ReportTarget, IsADescriptorAndAnInode) {
  const ReportTarget target{5, 18446744073709551615U};
  EXPECT_EQ(to_string(target), "5:18446744073709551615");
  EXPECT_EQ(parse_report_target(to_string(target)), target);
  for (const char* text :
       {"", "5", ":", "5:", ":7", "-1:7", "5:7:9", "x:7", "5:18446744073709551616", "2147483648:1"}) {
    EXPECT_EQ(parse_report_target(text), std::nullopt) << text;
  }
}

struct Sockets {
  Fd reader, writer;
  ReportTarget target;
};

Sockets make_sockets() {
  std::array<int, 2> ends{};
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends.data()), 0);
  struct stat status{};
  EXPECT_EQ(fstat(ends[1], &status), 0);
  return {Fd(ends[0]), Fd(ends[1]), {ends[1], status.st_ino}};
}

TEST(SendReport, SendsOneMessageForEach) {
  const Sockets sockets = make_sockets();
  EXPECT_TRUE(send_report(sockets.target, {1, 2, 3}));
  EXPECT_TRUE(send_report(sockets.target, {}));
  std::array<char, 4096> bytes{};
  const ssize_t count = recv(sockets.reader.get(), bytes.data(), bytes.size(), 0);
  EXPECT_EQ(std::string(bytes.data(), static_cast<std::size_t>(count)), to_line({1, 2, 3}));
}

// A reader that is gone, or does not read, is neither a signal nor a hang; another file is left alone.
TEST(SendReport, DoesNoHarm) {
  Sockets sockets = make_sockets();
  while (send_report(sockets.target, {})) {
  }
  sockets.reader.reset();
  EXPECT_FALSE(send_report(sockets.target, {}));

  const Sockets other = make_sockets();
  EXPECT_FALSE(send_report({other.target.fd, sockets.target.inode}, {}));
  std::array<char, 16> bytes{};
  EXPECT_EQ(recv(other.reader.get(), bytes.data(), bytes.size(), MSG_DONTWAIT), -1);
  EXPECT_FALSE(send_report({-1, 0}, {}));
}

}  // namespace
}  // namespace onesum
