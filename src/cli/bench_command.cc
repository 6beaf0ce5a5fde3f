#include "cli/bench_command.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <iterator>

#include <fmt/format.h>

#include <onesum/error.h>

#include "base/amounts.h"
#include "cli/bench_compare.h"
#include "cli/bench_experiment.h"
#include "cli/bench_memory.h"
#include "cli/bench_progress.h"
#include "cli/bench_report.h"
#include "cli/machine.h"
#include "cli/output.h"
#include "cli/quantities.h"
#include "cli/shapes_file.h"
#include "cli/usage.h"

namespace onesum::cli {
namespace {

std::vector<std::vector<Shape>> workload_shapes(const BenchOptions& options) {
  std::vector<std::vector<Shape>> workloads;
  for (const std::size_t bytes : options.sizes) {
    const auto elements = static_cast<std::int64_t>(elements_in("--sizes", bytes, options.dtype));
    workloads.push_back({Shape{elements}});
  }
  if (options.shapes_file) {
    workloads.emplace_back();
    for (const NamedShape& named : read_shapes(*options.shapes_file)) workloads.back().push_back(named.shape);
  }
  return workloads;
}

// What is wrong, once all has been printed.
class WrongResults {
 public:
  void add(const Experiment& experiment) {
    const Workload& workload = experiment.workload();
    for (const MeasuredCase& one : experiment.cases()) {
      if (one.wrong != 0 && first_.empty()) {
        first_ = fmt::format("case {}, {}, {} bytes, {}", one.name, counted(workload.replicas(), "device"),
                             workload.bytes(), one.first_wrong);
      }
      elements_ += one.wrong;
    }
  }

  void refuse() const {
    if (elements_ == 0) return;
    throw Error(ErrorCode::kInternal,
                fmt::format("wrong result: {}; {} in all", first_, counted(elements_, "wrong element")));
  }

 private:
  std::size_t elements_ = 0;
  std::string first_;
};

class Bench {
 public:
  Bench(const BenchOptions& options, Part part)
      : resident_at_start_(resident_memory()),
        stage_(set_stage(options, part)),
        lockstep_(stage_.cluster ? std::make_unique<Lockstep>(*stage_.cluster)
                                 : std::make_unique<Lockstep>()),
        meeting_(stage_.processes > 1 && !stage_.is_on_gpus() ? Meeting::make(*lockstep_) : nullptr),
        laboratory_{options,
                    stage_,
                    *lockstep_,
                    meeting_.get(),
                    static_cast<std::size_t>(lockstep_->of_first(library_threads())),
                    resident_at_start_},
        report_(laboratory_, lockstep_->is_first()),
        progress_(lockstep_->is_first()) {}

  void run(const std::vector<std::vector<Shape>>& workloads) {
    std::vector<PlotPoint> compared;
    if (options().compare && lockstep_->is_first()) {
      compared = read_compared(*options().compare, stage_.devices().size());
    }
    bool goes_on = printed([&] { report_.begin(); });
    for (std::size_t w = 0; w < workloads.size() && goes_on; ++w) {
      Experiment experiment(laboratory_, workloads[w]);
      experiment.check();
      experiment.measure([&](std::size_t round) { show(experiment, w, workloads.size(), round); });
      experiment.check();  // once more: many calls later the results are still right
      wrong_.add(experiment);
      goes_on = printed([&] { report_.add(experiment); });
    }
    if (!lockstep_->is_first()) return;
    draw(compared);
    wrong_.refuse();
  }

 private:
  const BenchOptions& options() const { return laboratory_.options; }

  // Whether somebody reads what is printed; if not, all workers end.
  template <class Print>
  bool printed(Print print) {
    progress_.clear();
    double is_read = 1;
    try {
      print();
    } catch (const ReaderGone&) {
      is_read = 0;
    }
    return lockstep_->of_first(is_read) == 1;
  }

  void show(const Experiment& experiment, std::size_t workload, std::size_t workloads, std::size_t round) {
    progress_.show(fmt::format("onesum bench: {} ({} of {}), round {} of {}",
                               format_bytes(experiment.workload().bytes()), workload + 1, workloads,
                               round + 1, options().budget.rounds));
  }

  void draw(const std::vector<PlotPoint>& compared) {
    if (!options().plot || report_.points().empty()) return;
    std::vector<PlotPoint> points = report_.points();
    points.insert(points.end(), compared.begin(), compared.end());
    write_file(*options().plot, plot_svg(points, report_.title()));
  }

  std::optional<std::size_t> resident_at_start_;
  Stage stage_;
  std::unique_ptr<Lockstep> lockstep_;
  std::unique_ptr<Meeting> meeting_;
  Laboratory laboratory_;
  BenchReport report_;
  Progress progress_;
  WrongResults wrong_;
};

void draw_compared(const BenchOptions& options) {
  const std::size_t replicas =
      options.devices.value_or(options.workers ? 1 : 2) * options.workers.value_or(1);
  const std::vector<PlotPoint> compared = read_compared(*options.compare, replicas);
  const auto is_ours = [](const PlotPoint& point) { return point.peer == "onesum"; };
  std::vector<PlotPoint> points;  // ours first
  std::ranges::copy_if(compared, std::back_inserter(points), is_ours);
  std::ranges::copy_if(compared, std::back_inserter(points), std::not_fn(is_ours));
  const std::string name = std::filesystem::path(*options.compare).stem().string();
  write_file(*options.plot, plot_svg(points, fmt::format("{}, {}", name, counted(replicas, "replica"))));
}

}  // namespace

int run_bench(const BenchOptions& options) {
  if (!options.measure) {
    draw_compared(options);
    return 0;
  }
  static_cast<void>(result_dtype(options.op, options.dtype));  // refuses types without a sum
  const auto workloads = workload_shapes(options);
  const Part part = part_of_this_process(options);
  if (options.messages && part != Part::kStartsWorkers && part != Part::kWorker) {
    throw UsageError("--op send_recv needs worker processes: onesum bench -n 2 --op send_recv");
  }
  if (options.messages && options.devices.value_or(1) != 1) {
    throw UsageError("--op send_recv goes from worker to worker: --devices must be 1");
  }
  if (part == Part::kStartsWorkers) {
    // A mistake is told before any worker is started.
    if (options.compare) read_compared(*options.compare, *options.workers * options.devices.value_or(1));
    return run_bench_workers(options);
  }
  try {
    Bench(options, part).run(workloads);
    return 0;
  } catch (const FirstTells&) {
    return 0;
  }
}

}  // namespace onesum::cli
