// The bench's drawings, and the times of others in them.
#include <cctype>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/bench_compare.h"
#include "cli/bench_plot.h"
#include "cli/run_tool.h"
#include "support/expect_error.h"

namespace onesum::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kQuick = "BENCH_BUDGET=0.003";

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

// What is wrong with an XML document that has elements, attributes, text and the usual entities; empty:
// nothing.
std::string fault_in_xml(const std::string& xml) {
  std::vector<std::string> open;
  std::size_t at = 0;
  while (at < xml.size()) {
    if (xml[at] != '<') {
      const std::size_t end = std::min(xml.find('<', at), xml.size());
      for (std::size_t i = at; i < end; ++i) {
        const std::string rest = xml.substr(i, 5);
        if (xml[i] == '&' && rest != "&amp;" && !rest.starts_with("&lt;") && !rest.starts_with("&gt;"))
          return "a bare & at " + std::to_string(i);
        const bool is_space = std::isspace(static_cast<unsigned char>(xml[i])) != 0;
        if (open.empty() && !is_space) return "text outside at " + std::to_string(i);
        if (static_cast<unsigned char>(xml[i]) < ' ' && !is_space) return "a control character";
      }
      at = end;
      continue;
    }
    const std::size_t end = xml.find('>', at);
    if (end == std::string::npos) return "a tag without an end";
    const std::string tag = xml.substr(at + 1, end - at - 1);
    if (count(tag, "\"") % 2 != 0 || tag.find('<') != std::string::npos) return "bad tag <" + tag;
    const std::string name = tag.substr(0, tag.find_first_of(" /", 1));
    if (name.starts_with("/")) {
      if (open.empty() || "/" + open.back() != name) return "<" + name + "> closes nothing";
      open.pop_back();
    } else if (!tag.ends_with("/")) {
      open.push_back(name);
    }
    at = end + 1;
  }
  return open.empty() ? "" : open.back() + " is not closed";
}

TEST(Plot, IsWellFormedWhateverTheNames) {
  const std::vector<PlotPoint> points = {{"onesum", "a<b&c>d\x01\"'", 4, 1e-6},
                                         {"onesum", "a<b&c>d\x01\"'", 1 << 20, 1e-3},
                                         {"bound", "ideal_in", 4, 1e-8},
                                         {"gloo", "shm", 4, 2e-5}};
  const std::string svg = plot_svg(points, "x & <y>");
  EXPECT_EQ(fault_in_xml(svg), "");
  EXPECT_THAT(svg,
              AllOf(HasSubstr(">x &amp; &lt;y&gt;</text>"), HasSubstr("onesum a&lt;b&amp;c&gt;d?"),
                    HasSubstr(">gloo shm</text>"), HasSubstr(">1 µs</text>"), HasSubstr(">1 MiB</text>")));
  EXPECT_EQ(count(svg, "<polyline "), 6U) << "three lines in each of two panels";
  EXPECT_THAT(svg, AllOf(Not(HasSubstr("nan")), Not(HasSubstr("inf"))));
}

TEST(Plot, PointsAreJoinedInOrderOfSizeAndHigherIsMore) {
  const std::vector<PlotPoint> points = {{"onesum", "in", 1 << 20, 1e-3}, {"onesum", "in", 1024, 1e-5}};
  const std::string svg = plot_svg(points, "");
  const std::size_t at = svg.find("<polyline points=\"") + 18;
  double x[2];
  double y[2];
  ASSERT_EQ(std::sscanf(svg.c_str() + at, "%lf,%lf %lf,%lf", &x[0], &y[0], &x[1], &y[1]), 4);
  EXPECT_LT(x[0], x[1]);
  EXPECT_GT(y[0], y[1]);
}

TEST(Plot, OfOneSizeIsADrawingToo) {
  const std::string svg = plot_svg(std::vector<PlotPoint>{{"onesum", "in", 8, 1e-6}}, "one");
  EXPECT_EQ(fault_in_xml(svg), "");
  EXPECT_THAT(svg, HasSubstr(">8 B</text>"));
}

TEST(Compared, TakesTheMedianOfOneWorld) {
  const TemporaryFolder folder;
  std::string lines;
  for (const char* time : {"30", "10", "20"}) {
    lines += std::string(R"({"peer":"p","case":"c","world":4,"bytes":8,"us_median":)") + time +
             R"(,"round":0})" + "\n\n";
  }
  lines += R"({"peer":"p","case":"c","world":2,"bytes":8,"us_median":1})";
  const std::string path = folder.write("p.json", lines);
  const auto points = read_compared(path, 4);
  ASSERT_EQ(points.size(), 1U);
  EXPECT_EQ(points[0].peer, "p");
  EXPECT_DOUBLE_EQ(points[0].seconds, 20e-6);
  onesum::testing::expect_invalid([&] { read_compared(path, 3); },
                                  {"has no times of 3 replicas; it has those of 2, 4"});
  const std::string broken = folder.write("broken.json", "\n" + lines + "\n[]\n");
  onesum::testing::expect_invalid([&] { read_compared(broken, 4); },
                                  {"broken.json:9: no JSON object with peer"});
}

TEST(BenchPlot, DrawsItsWorkersAndOthers) {
  const TemporaryFolder folder;
  const std::string others =
      folder.write("o.json", R"({"peer":"gloo","case":"shm","world":2,"bytes":1024,"us_median":31.5})");
  const ToolRun run = run_tool(
      "bench -n 2 --sizes 8,1k,64k --plot '" + folder.file("p.svg") + "' --compare '" + others + "'", kQuick);
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const std::string svg = contents_of(folder.file("p.svg"));
  EXPECT_EQ(fault_in_xml(svg), "");
  EXPECT_THAT(svg, AllOf(HasSubstr("sum of float32 on 2 worker processes of 1 device"),
                         HasSubstr(">onesum workers_in</text>"), HasSubstr(">bound ideal_in</text>"),
                         HasSubstr(">gloo shm</text>")));
  const ToolRun wrong = run_tool("bench -n 3 --sizes 8 --plot x.svg --compare '" + others + "'", kQuick);
  EXPECT_EQ(wrong.exit_code, 1);
  EXPECT_THAT(wrong.err, HasSubstr("has no times of 3 replicas; it has those of 2"));
  EXPECT_THAT(wrong.err, Not(HasSubstr("worker 0 failed")));
}

TEST(BenchPlot, DrawsWhatOthersMeasuredWithoutMeasuring) {
  const TemporaryFolder folder;
  const std::string lines =
      folder.write("both.json",
                   "{\"peer\":\"gloo\",\"case\":\"shm_in\",\"world\":3,\"bytes\":1024,\"us_median\":31.5}\n"
                   "{\"peer\":\"onesum\",\"case\":\"shm_in\",\"world\":3,\"bytes\":1024,\"us_median\":3}\n");
  const ToolRun run = run_tool("bench --devices 3 --no-measure --plot '" + folder.file("p.svg") +
                               "' --compare '" + lines + "'");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(run.out, "");
  const std::string svg = contents_of(folder.file("p.svg"));
  EXPECT_EQ(fault_in_xml(svg), "");
  EXPECT_THAT(svg, AllOf(HasSubstr("both, 3 replicas"), HasSubstr(">onesum shm_in</text>"),
                         HasSubstr(">gloo shm_in</text>"), Not(HasSubstr("bound"))));
}

}  // namespace
}  // namespace onesum::cli
