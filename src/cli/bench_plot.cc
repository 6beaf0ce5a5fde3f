#include "cli/bench_plot.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <limits>

#include <fmt/format.h>

#include "base/amounts.h"
#include "base/xml.h"

namespace onesum::cli {
namespace {

// Pixels.
constexpr double kMargin = 24;
constexpr double kTop = 86;  // title, and the panels' own
constexpr double kAxisLabels = 70;
constexpr double kPanelWidth = 420;
constexpr double kPanelHeight = 330;
constexpr double kWidth = 2 * (kMargin + kAxisLabels + kPanelWidth) + kMargin;
constexpr double kLegendTop = kTop + kPanelHeight + 66;
constexpr double kLegendRow = 22;
constexpr std::size_t kLegendColumns = 3;

constexpr std::array kColours = {"#1b6ca8", "#c1541c", "#2e7d4f", "#8e3b8a", "#b3304a",
                                 "#a07d00", "#3f51a3", "#4d6b6b", "#d1499b", "#5a9a1f"};
constexpr std::array kBoundColours = {"#444444", "#a5a5a5"};

// ---- lines ----

struct Line {
  std::string peer;
  std::string name;
  std::vector<PlotPoint> points;  // by size
  const char* colour = nullptr;

  bool is_ours() const { return peer == "onesum"; }
  bool is_bound() const { return peer == "bound"; }
};

std::vector<Line> lines_of(std::span<const PlotPoint> points) {
  std::vector<Line> lines;
  std::size_t colours = 0;
  std::size_t bounds = 0;
  for (const PlotPoint& point : points) {
    auto line = std::ranges::find_if(
        lines, [&](const Line& one) { return one.peer == point.peer && one.name == point.name; });
    if (line == lines.end()) {
      line = lines.insert(line, Line{point.peer, point.name, {}});
      line->colour = line->is_bound() ? kBoundColours[bounds++ % kBoundColours.size()]
                                      : kColours[colours++ % kColours.size()];
    }
    line->points.push_back(point);
    line->points.back().bytes = std::max<std::size_t>(point.bytes, 1);  // nothing has no logarithm
  }
  for (Line& line : lines) std::ranges::sort(line.points, {}, &PlotPoint::bytes);
  return lines;
}

double bandwidth_of(const PlotPoint& point) { return static_cast<double>(point.bytes) / point.seconds; }

// ---- axes ----

// From `low` to `high` in logarithms, over so many pixels.
struct Scale {
  double low = 0;
  double high = 1;
  double at_low = 0;
  double at_high = 0;

  double operator()(double value) const {
    return at_low + (std::log10(value) - low) / (high - low) * (at_high - at_low);
  }
};

struct Tick {
  double value = 1;
  std::string label;  // none: a line only
};

// In the largest unit that is not larger than the value, else in the last, which is the smallest.
std::string with_unit(double value, std::span<const std::pair<double, const char*>> units) {
  auto unit = std::ranges::find_if(units, [&](const auto& one) { return value >= one.first * 0.999; });
  if (unit == units.end()) --unit;
  return fmt::format("{:.3g} {}", value / unit->first, unit->second);
}

std::string time_label(double seconds) {
  constexpr std::pair<double, const char*> kUnits[] = {{1, "s"}, {1e-3, "ms"}, {1e-6, "µs"}, {1e-9, "ns"}};
  return with_unit(seconds, kUnits);
}

std::string bandwidth_label(double bytes_per_second) {
  constexpr std::pair<double, const char*> kUnits[] = {
      {1e12, "TB/s"}, {1e9, "GB/s"}, {1e6, "MB/s"}, {1e3, "kB/s"}, {1, "B/s"}};
  return with_unit(bytes_per_second, kUnits);
}

// Powers of ten are labelled; within few of them also their doubles and fives.
template <class Label>
std::vector<Tick> decade_ticks(const Scale& scale, Label label) {
  std::vector<Tick> ticks;
  const bool is_short = scale.high - scale.low < 2.5;
  for (double decade = scale.low; decade <= scale.high; ++decade) {
    for (int digit = 1; digit <= 9; ++digit) {
      const double value = digit * std::pow(10, decade);
      if (std::log10(value) > scale.high + 1e-9) break;
      const bool is_labelled = digit == 1 || (is_short && (digit == 2 || digit == 5));
      ticks.push_back({value, is_labelled ? label(value) : ""});
    }
  }
  return ticks;
}

// Powers of two, so many that their labels have room.
std::vector<Tick> size_ticks(const Scale& scale) {
  constexpr double kMostLabels = 7;
  const double first = std::ceil(scale.low / std::log10(2));
  const double last = std::floor(scale.high / std::log10(2));
  double step = 1;
  while ((last - first) / step >= kMostLabels) step += step < 2 ? 1 : 2;
  std::vector<Tick> ticks;
  for (double power = std::ceil(first / step) * step; power <= last; power += step) {
    if (power < 0) continue;
    ticks.push_back({std::exp2(power), format_bytes(std::size_t{1} << static_cast<unsigned>(power))});
  }
  return ticks;
}

template <class Value>
std::pair<double, double> range_of(const std::vector<Line>& lines, Value value) {
  double low = std::numeric_limits<double>::infinity();
  double high = -low;
  for (const Line& line : lines) {
    for (const PlotPoint& point : line.points) {
      low = std::min(low, std::log10(value(point)));
      high = std::max(high, std::log10(value(point)));
    }
  }
  return {low, high};
}

template <class Value>
Scale decade_scale(const std::vector<Line>& lines, Value value) {
  const auto [low, high] = range_of(lines, value);
  const double first = std::floor(low);
  return {first, std::max(std::ceil(high), first + 1), kTop + kPanelHeight, kTop};
}

Scale size_scale(const std::vector<Line>& lines, double left) {
  const auto [low, high] =
      range_of(lines, [](const PlotPoint& point) { return static_cast<double>(point.bytes); });
  const double room = std::max((high - low) * 0.04, 0.2);
  return {low - room, high + room, left, left + kPanelWidth};
}

// ---- the drawing ----

class Plot {
 public:
  Plot(std::span<const PlotPoint> points, const std::string& title) : lines_(lines_of(points)) {
    const std::size_t rows = (lines_.size() + kLegendColumns - 1) / kLegendColumns;
    const double height = kLegendTop + static_cast<double>(rows) * kLegendRow + kMargin;
    put("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 "
        "{0:.0f} "
        "{1:.0f}\" font-family=\"sans-serif\" font-size=\"12\" fill=\"#222\">\n",
        kWidth, height);
    put("<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n");
    text(kMargin, 34, title, "font-size=\"17\" font-weight=\"bold\"");
    panel(0, "time of a call", [](const PlotPoint& point) { return point.seconds; }, time_label);
    panel(1, "bytes of one replica / time", bandwidth_of, bandwidth_label);
    legend();
    put("</svg>\n");
  }

  std::string take() { return std::move(svg_); }

 private:
  template <class... Args>
  void put(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(svg_), format, std::forward<Args>(args)...);
  }
  void text(double x, double y, std::string_view words, std::string_view attributes) {
    put("<text x=\"{:.1f}\" y=\"{:.1f}\" {}>{}</text>\n", x, y, attributes, xml_escaped(words));
  }
  void rule(double x1, double y1, double x2, double y2, bool is_strong) {
    put("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\"/>\n", x1, y1, x2, y2,
        is_strong ? "#c4c8cc" : "#eceef0");
  }

  template <class Value, class Label>
  void panel(std::size_t index, std::string_view title, Value value, Label label) {
    const double left =
        kMargin + kAxisLabels + static_cast<double>(index) * (kPanelWidth + kAxisLabels + kMargin);
    const Scale x = size_scale(lines_, left);
    const Scale y = decade_scale(lines_, value);
    text(left, kTop - 14, title, "font-size=\"13\" font-weight=\"bold\"");
    for (const Tick& tick : decade_ticks(y, label)) {
      rule(left, y(tick.value), left + kPanelWidth, y(tick.value), !tick.label.empty());
      if (!tick.label.empty()) text(left - 8, y(tick.value) + 4, tick.label, "text-anchor=\"end\"");
    }
    for (const Tick& tick : size_ticks(x)) {
      rule(x(tick.value), kTop, x(tick.value), kTop + kPanelHeight, true);
      text(x(tick.value), kTop + kPanelHeight + 18, tick.label, "text-anchor=\"middle\"");
    }
    text(left + kPanelWidth / 2, kTop + kPanelHeight + 38, "size of one replica", "text-anchor=\"middle\"");
    put("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"none\" "
        "stroke=\"#8a9096\"/>\n",
        left, kTop, kPanelWidth, kPanelHeight);
    for (const Line& line : lines_) curve(line, x, y, value);
  }

  static std::string stroke_of(const Line& line) {
    return fmt::format("stroke=\"{}\" stroke-width=\"{}\"{}", line.colour, line.is_ours() ? 2.4 : 1.6,
                       line.is_bound()  ? " stroke-dasharray=\"2 4\""
                       : line.is_ours() ? ""
                                        : " stroke-dasharray=\"7 3\"");
  }

  // Ours are discs, those of others squares.
  void mark(const Line& line, double x, double y) {
    if (line.is_ours())
      put("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3.4\" fill=\"{}\"/>\n", x, y, line.colour);
    if (!line.is_ours() && !line.is_bound()) {
      put("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"6\" height=\"6\" fill=\"{}\"/>\n", x - 3, y - 3,
          line.colour);
    }
    if (line.is_bound())
      put("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"1.6\" fill=\"{}\"/>\n", x, y, line.colour);
  }

  template <class Value>
  void curve(const Line& line, const Scale& x, const Scale& y, Value value) {
    std::string path;
    const auto place = [&](const PlotPoint& point) {
      return std::pair(x(static_cast<double>(point.bytes)), y(value(point)));
    };
    for (const PlotPoint& point : line.points) {
      const auto [px, py] = place(point);
      fmt::format_to(std::back_inserter(path), "{}{:.1f},{:.1f}", path.empty() ? "" : " ", px, py);
    }
    put("<polyline points=\"{}\" fill=\"none\" stroke-linejoin=\"round\" {}/>\n", path, stroke_of(line));
    for (const PlotPoint& point : line.points) {
      const auto [px, py] = place(point);
      mark(line, px, py);
    }
  }

  void legend() {
    constexpr double kColumnWidth = (kWidth - 2 * kMargin) / kLegendColumns;
    constexpr double kSample = 34;
    for (std::size_t i = 0; i < lines_.size(); ++i) {
      const std::size_t row = i / kLegendColumns;
      const std::size_t column = i % kLegendColumns;
      const double left = kMargin + static_cast<double>(column) * kColumnWidth;
      const double y = kLegendTop + static_cast<double>(row) * kLegendRow;
      put("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" {}/>\n", left, y, left + kSample, y,
          stroke_of(lines_[i]));
      mark(lines_[i], left + kSample / 2, y);
      text(left + kSample + 8, y + 4, lines_[i].peer + " " + lines_[i].name, "");
    }
  }

  std::vector<Line> lines_;
  std::string svg_;
};

}  // namespace

std::string plot_svg(std::span<const PlotPoint> points, const std::string& title) {
  return Plot(points, title).take();
}

}  // namespace onesum::cli
