#include "cli/plan_subject.h"

#include <algorithm>

#include <fmt/format.h>

#include <onesum/cross_device_ops.h>
#include <onesum/error.h>

#include "cli/output.h"
#include "cli/quantities.h"
#include "cli/shapes_file.h"
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

std::vector<ReduceSpec> specs_of(const PlanOptions& options) {
  std::vector<Device> devices;
  for (std::size_t d = 0; d < options.devices; ++d)
    devices.push_back(Device(fmt::format("CPU:{}", d)).canonical());
  std::vector<Device> destinations = devices;
  if (options.to) destinations = {Device(*options.to).canonical()};
  std::vector<ReduceSpec> specs;
  for (Shape& shape : shapes_of(options))
    specs.push_back({options.dtype, std::move(shape), devices, destinations});
  return specs;
}

std::string title_of(const PlanOptions& options, const std::vector<ReduceSpec>& specs) {
  std::size_t elements = 0;
  for (const ReduceSpec& spec : specs) elements += spec.shape.elements();
  return fmt::format("{} of {} {}{}: {} {}, {} {}, {}", options.op == ReduceOp::kSum ? "sum" : "mean",
                     options.devices, options.devices == 1 ? "replica" : "replicas",
                     options.in_place ? " in place" : "", specs.size(),
                     specs.size() == 1 ? "tensor" : "tensors", elements, to_string(options.dtype),
                     format_bytes(elements * size_of(options.dtype)));
}

// "CPU:0" where all devices belong to one task, else the whole name.
std::vector<std::string> names_of(const std::vector<Device>& devices) {
  const bool is_one_task = std::all_of(devices.begin(), devices.end(), [&](const Device& device) {
    return device.job() == devices[0].job() && device.replica() == devices[0].replica() &&
           device.task() == devices[0].task();
  });
  std::vector<std::string> names;
  for (const Device& device : devices) {
    const bool is_short = is_one_task && device.type() && device.index();
    names.push_back(is_short ? fmt::format("{}:{}", *device.type(), *device.index()) : device.to_string());
  }
  return names;
}

// The type in which a pack's replicas come.
Element input_of(const plan::Plan& plan, std::size_t pack) {
  for (const plan::Buffer& buffer : plan.buffers) {
    const bool is_input = buffer.role == plan::Role::kInput || buffer.role == plan::Role::kInOut;
    if (is_input && static_cast<std::size_t>(buffer.pack) == pack) return buffer.element;
  }
  return plan.packs[pack].accumulator;
}

// Every replica of every pack has `bytes` (rounded up to whole elements).
plan::Sizes sizes_for(const plan::Plan& plan, std::size_t bytes) {
  plan::Sizes sizes;
  for (std::size_t p = 0; p < plan.packs.size(); ++p) {
    const std::size_t element = size_of(input_of(plan, p));
    const std::size_t length = (bytes + element - 1) / element;
    sizes.pack_lengths.push_back(length);
    sizes.counts.emplace_back(plan.packs[p].replicas.size(), length);
  }
  return sizes;
}

}  // namespace

PlanSubject plan_of_call(const PlanOptions& options) {
  const std::vector<ReduceSpec> specs = specs_of(options);
  const ReductionToOneDevice ops(options.reduce_to);
  const Plan planned = ops.plan(options.op, specs, options.in_place);
  PlanSubject subject;
  subject.title = title_of(options, specs);
  subject.plan = planned.value();
  subject.sizes.pack_lengths = planned.pack_elements();
  subject.device_names = names_of(planned.devices());
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
  }
  return subject;
}

}  // namespace onesum::cli
