#include "cli/plan_subject.h"

#include <algorithm>
#include <memory>

#include <fmt/format.h>

#include <onesum/cross_device_ops.h>
#include <onesum/error.h>

#include "base/amounts.h"
#include "base/combine.h"
#include "base/text.h"
#include "cli/output.h"
#include "cli/quantities.h"
#include "cli/shapes_file.h"
#include "cli/usage.h"
#include "cli/worker_names.h"
#include "plan/lower_bound.h"
#include "plan/text.h"

namespace onesum::cli {
namespace {

std::vector<Shape> shapes_of(const PlanOptions& options) {
  if (!options.shapes_file) {
    return {
        Shape{static_cast<std::int64_t>(elements_in("--bytes", options.bytes.value_or(0), options.dtype))}};
  }
  std::vector<Shape> shapes;
  for (NamedShape& named : read_shapes(*options.shapes_file)) shapes.push_back(std::move(named.shape));
  return shapes;
}

std::size_t workers_of(const PlanOptions& options) { return options.workers.value_or(1); }
std::size_t replicas_of(const PlanOptions& options) { return workers_of(options) * options.devices; }

// Whether the call is on workers of its own, and not on the devices of this process.
bool has_workers(const PlanOptions& options) { return options.spec || options.workers; }

std::vector<Device> devices_of(const PlanOptions& options) {
  std::vector<Device> devices;
  const std::vector<std::string> workers =
      has_workers(options) ? worker_names(workers_of(options)) : std::vector<std::string>{""};
  for (const std::string& worker : workers) {
    for (std::size_t d = 0; d < options.devices; ++d)
      devices.push_back(Device(fmt::format("{}/device:{}:{}", worker, options.device_type, d)).canonical());
  }
  return devices;
}

std::vector<ReduceSpec> specs_of(const PlanOptions& options) {
  const std::vector<Device> devices = devices_of(options);
  std::vector<Device> destinations = devices;
  if (options.to) destinations = {Device(*options.to).canonical(devices.front())};
  std::vector<ReduceSpec> specs;
  for (Shape& shape : shapes_of(options))
    specs.push_back({options.dtype, std::move(shape), devices, destinations});
  return specs;
}

void refuse_too_many(const PlanOptions& options) {
  if (replicas_of(options) <= kMostStoredDevices) return;
  throw Error(
      ErrorCode::kInvalidArgument,
      fmt::format("a plan of {} devices is too large to be stored and proved (at most {}); --simulate "
                  "shows what xring or rechd of one tensor would cost",
                  replicas_of(options), kMostStoredDevices));
}

const AllReduceSpec& only_spec(const PlanOptions& options) { return options.spec->values().front(); }

std::string short_name(const Device& device) {
  if (!device.type() || !device.index()) return device.to_string();
  return fmt::format("{}:{}", *device.type(), *device.index());
}

// "CPU:0" where all devices belong to one task, "task:1/CPU:0" where they belong to one job, else the whole
// name.
std::vector<std::string> names_of(const std::vector<Device>& devices) {
  const bool is_one_job = std::ranges::all_of(devices, [&](const Device& device) {
    return device.job() == devices[0].job() && device.replica() == devices[0].replica() && device.task();
  });
  const bool is_one_task = is_one_job && std::ranges::all_of(devices, [&](const Device& device) {
                             return device.task() == devices[0].task();
                           });
  std::vector<std::string> names;
  for (const Device& device : devices) {
    if (is_one_task) {
      names.push_back(short_name(device));
    } else {
      names.push_back(is_one_job ? fmt::format("task:{}/{}", *device.task(), short_name(device))
                                 : device.to_string());
    }
  }
  return names;
}

void name_devices(PlanSubject& subject, const std::vector<Device>& devices) {
  subject.device_names = names_of(devices);
  for (const Device& device : devices) subject.drawn_names.push_back(short_name(device));
}

// Every replica of every pack has `bytes` (rounded up to whole elements).
plan::Sizes sizes_for(const plan::Plan& plan, std::size_t bytes) {
  plan::Sizes sizes;
  for (std::size_t p = 0; p < plan.packs.size(); ++p) {
    const std::size_t element = size_of(plan::input_of(plan, p));
    const std::size_t length = (bytes + element - 1) / element;
    sizes.pack_lengths.push_back(length);
    sizes.counts.emplace_back(plan.packs[p].replicas.size(), length);
  }
  return sizes;
}

// " on 4 workers of 2 devices on 2 machines".
std::string workers_text(const PlanOptions& options) {
  const auto counted = [](std::size_t count, std::string_view what) {
    return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
  };
  std::string text =
      fmt::format(" on {} of {}", counted(workers_of(options), "worker"), counted(options.devices, "device"));
  if (options.machines) text += " on " + counted(*options.machines, "machine");
  return text;
}

}  // namespace

std::string title_of(const PlanOptions& options) {
  const std::vector<Shape> shapes = shapes_of(options);
  std::size_t elements = 0;
  for (const Shape& shape : shapes) elements += shape.elements();
  const std::size_t replicas = replicas_of(options);
  const std::string_view what =
      options.collective == CollectiveKind::kReduce ? name_of(options.op) : to_string(options.collective);
  return fmt::format("{} of {} {}{}{}: {} {}, {} {}, {}", what, replicas,
                     replicas == 1 ? "replica" : "replicas",
                     has_workers(options) ? workers_text(options) : "", options.in_place ? " in place" : "",
                     shapes.size(), shapes.size() == 1 ? "tensor" : "tensors", elements,
                     to_string(options.dtype), format_bytes(elements * size_of(options.dtype)));
}

bool can_be_streamed(const PlanOptions& options) {
  return options.spec && options.spec->values().size() == 1 && only_spec(options).alg != "auto" &&
         !options.shapes_file && !options.half && options.num_packs <= 1;
}

api::StudiedAllReduce study_of(const PlanOptions& options) {
  if (options.spec->values().size() > 1 || only_spec(options).alg == "auto") {
    throw UsageError(fmt::format("--half: {} is not one algorithm; expected xring, rechd or direct",
                                 quoted(options.spec->to_string())));
  }
  return {workers_of(options),
          options.devices,
          options.dtype,
          options.op,
          options.in_place,
          only_spec(options),
          options.numerics,
          options.device_type == "GPU",
          options.machines.value_or(1)};
}

std::size_t elements_of(const PlanOptions& options) { return shapes_of(options).front().elements(); }

PlanSubject plan_of_call(const PlanOptions& options) {
  refuse_too_many(options);
  const std::vector<ReduceSpec> specs = specs_of(options);
  const std::unique_ptr<CrossDeviceOps> ops =
      make_ops({options.spec, options.workers, options.devices, options.num_packs, options.reduce_to,
                options.device_type, options.machines.value_or(1)});
  CommunicationOptions how;
  how.numerics = options.numerics;
  const bool is_reduce = options.collective == CollectiveKind::kReduce;
  const CollectiveSpec collective{options.collective, options.op, 0, specs.front()};
  const Plan planned =
      is_reduce ? ops->plan(options.op, specs, options.in_place, how) : ops->plan(collective, how);
  PlanSubject subject;
  subject.title = title_of(options);
  subject.plan = planned.value();
  subject.sizes.pack_lengths = planned.pack_elements();
  if (options.machines) subject.machines = api::even_machine_numbers(workers_of(options), *options.machines);
  name_devices(subject, planned.devices());
  if (options.explain) {
    subject.explanation =
        is_reduce ? ops->explain(options.op, specs, options.in_place, how) : ops->explain(collective, how);
  }
  return subject;
}

PlanSubject plan_of_half(const PlanOptions& options) {
  refuse_too_many(options);
  PlanSubject subject;
  subject.plan = api::half_of(study_of(options), *options.half);
  subject.title = fmt::format(
      "{} half of a {}", *options.half == api::Half::kReduceScatter ? "first" : "second", title_of(options));
  subject.sizes.pack_lengths = {elements_of(options)};
  name_devices(subject, devices_of(options));
  return subject;
}

PlanSubject plan_of_file(const PlanOptions& options) {
  const std::string& path = *options.file;
  PlanSubject subject;
  try {
    subject.plan = plan::parse_text(read_file(path));
  } catch (const Error& error) {
    const std::string message = error.what();  // of read_file it names the file already
    throw Error(error.code(), message.find(path) != std::string::npos ? message : path + ": " + message);
  }
  subject.title = path;
  subject.has_sizes = options.bytes.has_value();
  subject.sizes = sizes_for(subject.plan, options.bytes.value_or(0));
  for (std::size_t d = 0; d < subject.plan.device_rank.size(); ++d) {
    subject.device_names.push_back(fmt::format("rank {}", subject.plan.device_rank[d]));
    subject.drawn_names.push_back("device");
  }
  return subject;
}

}  // namespace onesum::cli
