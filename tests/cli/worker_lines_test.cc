// What workers write and report, taken apart.
#include "cli/worker_lines.h"

#include <array>
#include <string>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/fd.h"
#include "cli/output_queue.h"
#include "cli/run_summary.h"

namespace onesum::cli {
namespace {

TEST(WorkerLines, AreHeldBackUntilTheirEnd) {
  WorkerLines lines(LineStyle::kPrefixed, 12, Stream::kOut);
  EXPECT_EQ(lines.add("a"), "");
  EXPECT_EQ(lines.add("b\n\nc\nd"), "[12] ab\n[12] \n[12] c\n");
  EXPECT_EQ(lines.finish(), "[12] d\n");
  EXPECT_EQ(lines.finish(), "");
}

TEST(WorkerLines, EndlessOnesAreCut) {
  WorkerLines lines(LineStyle::kPlain, 0, Stream::kOut);
  const std::string bytes(WorkerLines::kLongest / 2, 'x');
  EXPECT_EQ(lines.add(bytes), "");
  EXPECT_EQ(lines.add(bytes), bytes + bytes + "\n");
  EXPECT_EQ(lines.finish(), "");
}

TEST(WorkerLines, JsonTakesAnyBytes) {
  EXPECT_EQ(styled_line(LineStyle::kJson, 1, Stream::kErr, "a\"\xff\t"),
            "{\"worker\":1,\"stream\":\"stderr\",\"line\":\"a\\\"\xef\xbf\xbd\\t\"}\n");
}

struct Pipe {
  Fd reader, writer;
};

Pipe make_pipe() {
  std::array<int, 2> ends{};
  EXPECT_EQ(pipe(ends.data()), 0);
  return {Fd(ends[0]), Fd(ends[1])};
}

std::string read_all(const Fd& fd) {
  fcntl(fd.get(), F_SETFL, O_NONBLOCK);
  std::string text;
  std::array<char, 4096> bytes{};
  for (ssize_t count = 0; (count = read(fd.get(), bytes.data(), bytes.size())) > 0;)
    text.append(bytes.data(), static_cast<std::size_t>(count));
  return text;
}

TEST(OutputQueue, NeverWaitsForItsReader) {
  const Pipe pipe = make_pipe();
  OutputQueue queue(pipe.writer.get());
  std::string expected;
  for (char c = 'a'; c <= 'z'; ++c) expected += std::string(100000, c) + "\n";
  queue.append(expected);
  EXPECT_TRUE(queue.is_full());
  std::string got;
  bool was_inside_line = false;
  while (!queue.is_empty()) {
    queue.write_some();
    was_inside_line = was_inside_line || queue.is_inside_line();
    got += read_all(pipe.reader);
  }
  EXPECT_EQ(got, expected);
  EXPECT_TRUE(was_inside_line);
  EXPECT_FALSE(queue.is_inside_line());
}

TEST(OutputQueue, GivesUpWithoutAReader) {
  Pipe pipe = make_pipe();
  OutputQueue queue(pipe.writer.get());
  pipe.reader.reset();
  const auto old = signal(SIGPIPE, SIG_IGN);
  queue.append("a\n");
  queue.write_some();
  signal(SIGPIPE, old);
  EXPECT_EQ(queue.error(), EPIPE);
  EXPECT_TRUE(queue.is_empty());
  queue.append("b\n");
  EXPECT_TRUE(queue.is_empty());
}

TEST(ParseReport, ReadsWhatWorkersSend) {
  for (const WorkerReport& report :
       {WorkerReport{}, WorkerReport{1, 2, 0.1}, WorkerReport{1, 2, 1e-9, 4, 0.3}}) {
    EXPECT_EQ(parse_report(to_line(report)), report);
  }
  for (const char* message : {"", "{}", "[]", "{\"calls\":1}", "{\"calls\":-1,\"bytes\":0,\"waited_s\":0}",
                              "{\"calls\":1,\"bytes\":0,\"waited_s\":-1}",
                              "{\"calls\":1,\"bytes\":0,\"waited_s\":0,\"most_waited_for\":1}",
                              "{\"calls\":1,\"bytes\":0,\"waited_s\":0"}) {
    EXPECT_EQ(parse_report(message), std::nullopt) << message;
  }
}

TEST(Summary, OfWorkersThatReportedNothingIsEmpty) {
  EXPECT_EQ(summary_text(std::vector<WorkerEnding>(3)), "");
  std::vector<WorkerEnding> endings(3);
  endings[1].report = WorkerReport{1, 1024, 0};
  EXPECT_EQ(summary_text(endings), "onesum: worker 1: 1 call, 1 KiB, waited 0.00 ns\n");
}

}  // namespace
}  // namespace onesum::cli
