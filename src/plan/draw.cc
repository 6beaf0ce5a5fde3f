#include "plan/draw.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <iterator>
#include <set>

#include <fmt/format.h>

#include "base/xml.h"
#include "plan/draw_layout.h"
#include "plan/refuse.h"
#include "plan/step_label.h"

namespace onesum::plan {

namespace {

// Pixels.
constexpr double kMargin = 28;
constexpr double kGap = 46;  // between columns: room for arrows
constexpr double kBoxHeight = 38;
constexpr double kRowHeight = 66;
constexpr double kPillHeight = 24;
constexpr double kHeader = 132;       // title, legend and the devices' names
constexpr double kLetter = 6.7;       // width of a monospaced letter of 11 px
constexpr double kTitleLetter = 7.6;  // of one of a device's name
constexpr double kNarrowest = 120;

// Characters of a step's formula: fewer where many columns have steps.
std::size_t longest_formula(std::size_t columns) {
  if (columns <= 2) return 80;
  return columns <= 4 ? 46 : columns <= 8 ? 34 : 26;
}

// Arrows have the colour of the device they come from.
constexpr std::array kColours = {"#1b6ca8", "#c1541c", "#2e7d4f", "#8e3b8a",
                                 "#a07d00", "#b3304a", "#3f51a3", "#4d6b6b"};

std::string_view colour(std::int32_t device) {
  return kColours[static_cast<std::size_t>(device) % kColours.size()];
}

struct Point {
  double x = 0;
  double y = 0;
};

class Drawing {
 public:
  Drawing(const Plan& plan, const DrawOptions& options)
      : plan_(plan), options_(options), layout_(lay_out(plan)) {
    const std::size_t devices = plan.device_rank.size();
    std::vector<bool> has_boxes(devices, false);
    for (const Box& box : layout_.boxes) has_boxes[static_cast<std::size_t>(box.device)] = true;
    const std::size_t longest =
        longest_formula(static_cast<std::size_t>(std::ranges::count(has_boxes, true)));
    for (std::int32_t device = 0; device < static_cast<std::int32_t>(devices); ++device) {
      widths_.push_back(std::max(kNarrowest, static_cast<double>(name_of(device).size()) * kTitleLetter));
    }
    for (const Box& box : layout_.boxes) {
      labels_.push_back(step_label(plan, box.ref, longest));
      const std::size_t letters = std::max(labels_.back().head.size(), labels_.back().formula_length);
      double& width = widths_[static_cast<std::size_t>(box.device)];
      width = std::max(width, static_cast<double>(letters) * kLetter + 18);
    }
    double columns = -kGap;
    for (const double width : widths_) columns += width + kGap;
    width_ = 2 * kMargin + std::max({columns, static_cast<double>(subtitle().size()) * kLetter, 580.0});
    double x = (width_ - columns) / 2;
    for (const double width : widths_) {
      columns_.push_back(x);
      x += width + kGap;
    }
    height_ = bottom_y() + kPillHeight + kMargin;
  }

  std::string draw() {
    begin();
    bands();
    columns();
    for (std::size_t i = 0; i < layout_.flows.size(); ++i) arrow(layout_.flows[i]);
    for (std::size_t i = 0; i < layout_.boxes.size(); ++i) box(i);
    ends();
    put("</svg>\n");
    return std::move(svg_);
  }

 private:
  template <class... Args>
  void put(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(svg_), format, std::forward<Args>(args)...);
  }

  const Step& step_of(const Box& box) const {
    return plan_.lane(box.ref.lane).steps[static_cast<std::size_t>(box.ref.step)];
  }
  double column_x(std::int32_t device) const { return columns_[static_cast<std::size_t>(device)]; }
  double box_width(std::int32_t device) const { return widths_[static_cast<std::size_t>(device)]; }
  double centre_x(std::int32_t device) const { return column_x(device) + box_width(device) / 2; }
  double top_y() const { return kHeader; }  // of the replicas
  double row_y(std::int32_t row) const {
    return top_y() + kPillHeight + 36 + static_cast<double>(row) * kRowHeight;
  }
  double bottom_y() const { return row_y(layout_.rows) + 6; }  // of the results

  void begin() {
    put("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 "
        "{0:.0f} {1:.0f}\" "
        "font-family=\"ui-monospace, 'DejaVu Sans Mono', Menlo, monospace\" font-size=\"11\">\n",
        width_, height_);
    put("<defs>\n");
    for (std::size_t i = 0; i < kColours.size(); ++i) {
      put("<marker id=\"head{}\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" "
          "markerHeight=\"7\" "
          "orient=\"auto\"><path d=\"M0,0.8 L8,4 L0,7.2 z\" fill=\"{}\"/></marker>\n",
          i, kColours[i]);
    }
    put("</defs>\n<rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"#fbfbf9\"/>\n");
    const std::string& title = options_.title.empty() ? plan_.algorithm : options_.title;
    put("<text x=\"{}\" y=\"38\" font-size=\"18\" font-weight=\"bold\" fill=\"#1d1d1d\" "
        "font-family=\"system-ui, 'DejaVu Sans', sans-serif\">{}</text>\n",
        kMargin, xml_escaped(title));
    put("<text x=\"{}\" y=\"58\" fill=\"#555555\">{}</text>\n", kMargin, xml_escaped(subtitle()));
    legend();
  }

  std::string name_of(std::int32_t device) const {
    return options_.device_names.empty() ? fmt::format("device {}", device)
                                         : options_.device_names[static_cast<std::size_t>(device)];
  }

  std::string subtitle() const {
    std::size_t messages = 0;
    for (const Lane& lane : plan_.lanes) {
      messages += static_cast<std::size_t>(std::ranges::count(lane.steps, Op::kRecv, &Step::op));
    }
    const auto counted = [](std::size_t n, std::string_view what) {
      return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s");
    };
    return fmt::format("{} · order: {} · {} in {} · {}", plan_.algorithm, plan_.order,
                       counted(layout_.boxes.size(), "step"),
                       counted(static_cast<std::size_t>(layout_.rows), "row"), counted(messages, "message"));
  }

  void legend() {
    double x = kMargin;
    const auto entry = [&](std::string_view shape, std::string_view words) {
      put("<g transform=\"translate({:.1f},70)\">{}<text x=\"30\" y=\"11\" fill=\"#555555\">{}</text></g>\n",
          x, shape, words);
      x += 30 + static_cast<double>(words.size()) * kLetter + 22;
    };
    const auto has = [&](Flow::Kind kind) {
      return std::ranges::any_of(layout_.flows, [&](const Flow& flow) { return flow.kind == kind; });
    };
    const auto line = [](std::string_view style) {
      return fmt::format("<path d=\"M0,7 L24,7\" stroke=\"#555555\" stroke-width=\"1.6\" {}/>", style);
    };
    const auto square = [](std::string_view fill) {
      return fmt::format("<rect y=\"0\" width=\"22\" height=\"14\" rx=\"3\" fill=\"{}\" stroke=\"#8a8a8a\"/>",
                         fill);
    };
    const auto has_step = [&](Op op) {
      return std::ranges::any_of(layout_.boxes, [&](const Box& box) { return step_of(box).op == op; });
    };
    if (has_step(Op::kReduce)) entry(square(fill_of(Op::kReduce)), "reduce");
    if (has_step(Op::kCopy)) entry(square(fill_of(Op::kCopy)), "copy");
    if (has_step(Op::kNative)) entry(square(fill_of(Op::kNative)), "native collective");
    if (has_step(Op::kCall)) entry(square(fill_of(Op::kCall)), "user's function");
    if (has(Flow::Kind::kMessage)) entry(line(""), "message");
    if (has(Flow::Kind::kMemory)) entry(line("stroke-dasharray=\"6,3\""), "memory of another device");
    if (has(Flow::Kind::kWait)) entry(line("stroke-dasharray=\"1.5,3\""), "waits for");
    if (has(Flow::Kind::kMeeting)) entry(line("stroke-width=\"4\""), "run together");
  }

  static std::string_view fill_of(Op op) {
    if (op == Op::kReduce) return "#dcebf7";
    if (op == Op::kNative) return "#e3f1dc";
    return op == Op::kCopy ? "#ffffff" : "#fbe6cf";
  }

  // Behind the columns of each worker, where there are several workers.
  void bands() {
    const auto devices = static_cast<std::int32_t>(plan_.device_rank.size());
    if (std::ranges::adjacent_find(plan_.device_rank, std::not_equal_to()) == plan_.device_rank.end()) return;
    for (std::int32_t first = 0; first < devices;) {
      std::int32_t last = first;
      while (last + 1 < devices && plan_.rank_of(last + 1) == plan_.rank_of(first)) ++last;
      const double left = column_x(first) - kGap / 2 + 4;
      const double right = column_x(last) + box_width(last) + kGap / 2 - 4;
      put("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" rx=\"8\" fill=\"#f3f3ee\"/>\n",
          left, kHeader - 42, right - left, bottom_y() + kPillHeight + 10 - (kHeader - 42));
      first = last + 1;
    }
  }

  void columns() {
    for (std::int32_t device = 0; device < static_cast<std::int32_t>(plan_.device_rank.size()); ++device) {
      put("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\" font-size=\"12\" font-weight=\"bold\" "
          "fill=\"{}\">{}</text>\n",
          centre_x(device), kHeader - 24, colour(device), xml_escaped(name_of(device)));
      put("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\" fill=\"#777777\">worker {}</text>\n",
          centre_x(device), kHeader - 9, plan_.rank_of(device));
      put("<path d=\"M{0:.1f},{1:.1f} L{0:.1f},{2:.1f}\" stroke=\"#d5d5d0\" stroke-width=\"1.5\"/>\n",
          centre_x(device), top_y() + kPillHeight, bottom_y());
    }
  }

  // Replicas at the top of the columns, results at the bottom.
  void ends() {
    for (std::int32_t device = 0; device < static_cast<std::int32_t>(plan_.device_rank.size()); ++device) {
      std::set<std::size_t> replicas, results;  // of any pack
      for (const Pack& pack : plan_.packs) {
        for (std::size_t r = 0; r < pack.replicas.size(); ++r) {
          if (pack.replicas[r] == device) replicas.insert(r);
        }
        for (std::size_t d = 0; d < pack.destinations.size(); ++d) {
          if (pack.destinations[d] == device) results.insert(d);
        }
      }
      if (!replicas.empty()) pill(device, top_y(), fmt::format("replica {}", fmt::join(replicas, ", ")));
      if (!results.empty()) pill(device, bottom_y(), fmt::format("result {}", fmt::join(results, ", ")));
    }
  }

  void pill(std::int32_t device, double y, const std::string& words) {
    const auto fits = static_cast<std::size_t>((box_width(device) - 16) / kLetter);
    const std::string shown = words.size() <= fits ? words : words.substr(0, fits - 3) + "...";
    const double width = static_cast<double>(shown.size()) * kLetter + 24;
    put("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{}\" rx=\"{}\" fill=\"#fbfbf9\" "
        "stroke=\"{}\"/>\n",
        centre_x(device) - width / 2, y, width, kPillHeight, kPillHeight / 2, colour(device));
    put("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\" fill=\"#333333\">{}</text>\n",
        centre_x(device), y + 16, shown);
  }

  void box(std::size_t number) {
    const Box& box = layout_.boxes[number];
    const StepLabel& label = labels_[number];
    const double x = column_x(box.device);
    const double y = row_y(box.row);
    put("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{}\" rx=\"5\" fill=\"{}\" stroke=\"{}\" "
        "stroke-width=\"1.2\"/>\n",
        x, y, box_width(box.device), kBoxHeight, fill_of(step_of(box).op), colour(box.device));
    put("<text x=\"{:.1f}\" y=\"{:.1f}\" fill=\"#6a6a6a\">{}</text>\n", x + 9, y + 15,
        xml_escaped(label.head));
    put("<text x=\"{:.1f}\" y=\"{:.1f}\" fill=\"#1d1d1d\">{}</text>\n", x + 9, y + 30,
        xml_escaped(label.formula));
  }

  // Where an arrow leaves a box or a replica, and where it meets a box or a result.
  Point start_of(const Flow& flow) const {
    const bool rightwards = flow.to_device > flow.from_device;
    if (flow.from < 0) return {centre_x(flow.from_device), top_y() + kPillHeight};
    const Box& box = layout_.boxes[static_cast<std::size_t>(flow.from)];
    return {column_x(box.device) + (rightwards ? box_width(box.device) : 0),
            row_y(box.row) + kBoxHeight - 10};
  }

  Point end_of(const Flow& flow) const {
    const bool rightwards = flow.to_device > flow.from_device;
    if (flow.to < 0) return {centre_x(flow.to_device), bottom_y()};
    const Box& box = layout_.boxes[static_cast<std::size_t>(flow.to)];
    return {column_x(box.device) + (rightwards ? 0 : box_width(box.device)), row_y(box.row) + 10};
  }

  void arrow(const Flow& flow) {
    if (flow.kind == Flow::Kind::kMeeting) return bar(flow);
    if (flow.from_device == flow.to_device) return vertical_arrow(flow);
    const Point a = start_of(flow);
    const Point b = end_of(flow);
    const double direction = flow.to_device > flow.from_device ? 1 : -1;
    // Boxes are met from the side, replicas and results from below and above.
    const double bend = std::min(std::abs(b.x - a.x) * 0.5, 90.0);
    const Point c = flow.from < 0 ? Point{a.x, a.y + 30} : Point{a.x + direction * bend, a.y};
    const Point d = flow.to < 0 ? Point{b.x, b.y - 30} : Point{b.x - direction * bend, b.y};
    put("<path d=\"M{:.1f},{:.1f} C{:.1f},{:.1f} {:.1f},{:.1f} {:.1f},{:.1f}\" fill=\"none\" {}/>\n", a.x,
        a.y, c.x, c.y, d.x, d.y, b.x, b.y, stroke(flow));
  }

  // Between two boxes of one native collective, which are in the same row.
  void bar(const Flow& flow) {
    const bool rightwards = flow.to_device > flow.from_device;
    const std::int32_t left = rightwards ? flow.from_device : flow.to_device;
    const std::int32_t right = rightwards ? flow.to_device : flow.from_device;
    const Box& box = layout_.boxes[static_cast<std::size_t>(flow.from)];
    put("<path d=\"M{0:.1f},{1:.1f} L{2:.1f},{1:.1f}\" stroke=\"#8fbf7a\" stroke-width=\"4\"/>\n",
        column_x(left) + box_width(left), row_y(box.row) + kBoxHeight / 2, column_x(right));
  }

  // Within a column, beside the boxes.
  void vertical_arrow(const Flow& flow) {
    const Box& from = layout_.boxes[static_cast<std::size_t>(flow.from)];
    const Box& to = layout_.boxes[static_cast<std::size_t>(flow.to)];
    const double x = column_x(from.device) + box_width(from.device);
    put("<path d=\"M{0:.1f},{1:.1f} C{2:.1f},{1:.1f} {2:.1f},{3:.1f} {0:.1f},{3:.1f}\" fill=\"none\" {4}/>\n",
        x, row_y(from.row) + kBoxHeight - 10, x + 26, row_y(to.row) + 10, stroke(flow));
  }

  static std::string stroke(const Flow& flow) {
    std::string_view dashes;
    if (flow.kind == Flow::Kind::kMemory) dashes = " stroke-dasharray=\"6,3\"";
    if (flow.kind == Flow::Kind::kWait) dashes = " stroke-dasharray=\"1.5,3\"";
    return fmt::format(
        "stroke=\"{}\" stroke-width=\"1.5\" stroke-opacity=\"0.8\" marker-end=\"url(#head{})\"{}",
        colour(flow.from_device), static_cast<std::size_t>(flow.from_device) % kColours.size(), dashes);
  }

  const Plan& plan_;
  const DrawOptions& options_;
  Layout layout_;
  std::vector<StepLabel> labels_;
  std::vector<double> columns_;  // where each begins
  std::vector<double> widths_;
  double width_ = 0;
  double height_ = 0;
  std::string svg_;
};

}  // namespace

std::string to_svg(const Plan& plan, const DrawOptions& options) {
  std::size_t steps = 0;
  for (const Lane& lane : plan.lanes) {
    steps += static_cast<std::size_t>(
        std::ranges::count_if(lane.steps, [](const Step& step) { return is_work(step.op); }));
  }
  if (plan.device_rank.size() > kMaxDrawnDevices || steps > kMaxDrawnSteps) {
    refuse(fmt::format("a drawing shows at most {} devices and {} steps, the plan has {} and {}",
                       kMaxDrawnDevices, kMaxDrawnSteps, plan.device_rank.size(), steps));
  }
  if (!options.device_names.empty() && options.device_names.size() != plan.device_rank.size()) {
    refuse(
        fmt::format("{} device names for {} devices", options.device_names.size(), plan.device_rank.size()));
  }
  return Drawing(plan, options).draw();
}

}  // namespace onesum::plan
