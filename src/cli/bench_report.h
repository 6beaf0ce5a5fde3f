// What the bench prints: JSON lines or a table.
#pragma once

#include <cstddef>
#include <string>

#include "cli/bench_experiment.h"
#include "cli/bench_plot.h"

namespace onesum::cli {

class BenchReport {
 public:
  // Silent unless `is_first`.
  BenchReport(const Laboratory& laboratory, bool is_first) : laboratory_(laboratory), is_first_(is_first) {}

  void begin();
  void add(const Experiment& experiment);

  // What was added, and what it is of, for a drawing.
  std::string title() const;
  const std::vector<PlotPoint>& points() const { return points_; }

 private:
  void print_row(const Workload& workload, const MeasuredCase& result) const;
  void print_json(const char* peer, const std::string& name, const Workload& workload, const Series& times,
                  const MeasuredCase* result) const;

  const Laboratory& laboratory_;
  bool is_first_;
  std::vector<PlotPoint> points_;
};

}  // namespace onesum::cli
