#include "exec/bind_native.h"

#include <algorithm>
#include <string>
#include <vector>

#include <onesum/error.h>

namespace onesum::exec {
namespace {

using plan::Operand;
using plan::PackMember;
using plan::Step;

class NativeBinder {
 public:
  NativeBinder(Program& program, std::span<const std::shared_ptr<engine::Communicator>> communicators,
               const Scene& scene)
      : program_(program), communicators_(communicators), scene_(scene) {}

  void bind(const Step& step, BoundStep& bound) {
    const auto group = static_cast<std::size_t>(step.group);
    if (group >= communicators_.size() || communicators_[group] == nullptr) {
      throw Error(ErrorCode::kUnimplemented,
                  "the plan has a native collective over " +
                      std::to_string(scene_.plan.groups[group].devices.size()) +
                      " devices, and no engine for native collectives is there; expected an algorithm "
                      "without one");
    }
    const std::vector<std::int32_t>& devices = scene_.plan.groups[group].devices;
    BoundNative native;
    native.communicator = number_of(communicators_[group]);
    native.spans_processes = !std::ranges::all_of(devices, [&](std::int32_t d) { return scene_.is_own(d); });
    native.collective = static_cast<engine::NativeCollective>(step.collective);
    const Operand& any = scene_.plan.operands[step.first_operand];
    native.element = scene_.buffer(any).element;
    native.root = root_of(step, devices);
    native.first_count = static_cast<std::uint32_t>(program_.native_counts.size());
    native.first_share = static_cast<std::uint32_t>(program_.native_shares.size());
    add_shares(step, devices, any);
    native.num_counts = static_cast<std::uint32_t>(program_.native_counts.size()) - native.first_count;
    bound.native = static_cast<std::uint32_t>(program_.natives.size());
    bound.unit = scene_.units.of(step.device);
    program_.natives.push_back(native);
  }

 private:
  std::uint32_t number_of(const std::shared_ptr<engine::Communicator>& communicator) {
    auto& all = program_.communicators;
    const auto known = std::ranges::find(all, communicator);
    if (known != all.end()) return static_cast<std::uint32_t>(known - all.begin());
    all.push_back(communicator);
    return static_cast<std::uint32_t>(all.size()) - 1;
  }

  // The device, among the group's, that has the one destination of a reduce or the one source of a broadcast.
  int root_of(const Step& step, const std::vector<std::int32_t>& devices) const {
    if (step.collective == plan::Collective::kAllReduce) return -1;
    const std::span<const Operand> at_root = step.collective == plan::Collective::kReduce
                                                 ? scene_.plan.destinations(step)
                                                 : scene_.plan.sources(step);
    if (at_root.size() != 1) {
      throw Error(ErrorCode::kInternal, "a native collective was bound whose root is in another process");
    }
    return static_cast<int>(std::ranges::find(devices, scene_.buffer(at_root.front()).device) -
                            devices.begin());
  }

  // Of every tensor that the chunks touch, what each device of this process has of it.
  void add_shares(const Step& step, const std::vector<std::int32_t>& devices, const Operand& any) {
    const std::int32_t pack = scene_.buffer(any).pack;
    const plan::Extent range = scene_.layout.extent(pack, any.chunks);
    std::size_t member_begin = 0;
    for (const PackMember& member : scene_.table(pack).members) {
      const std::size_t begin = std::max(range.offset, member_begin);
      const std::size_t end = std::min(range.offset + range.length, member_begin + member.elements);
      if (begin < end) {
        program_.native_counts.push_back(end - begin);
        for (const std::int32_t device : devices) {
          if (!scene_.is_own(device)) continue;
          const auto pointer = [&](std::span<const Operand> operands) -> std::int32_t {
            const auto its = std::ranges::find_if(
                operands, [&](const Operand& operand) { return scene_.buffer(operand).device == device; });
            if (its == operands.end()) return -1;
            program_.pointers.push_back(scene_.layout.locate(*its, member, member_begin, begin));
            return static_cast<std::int32_t>(program_.pointers.size()) - 1;
          };
          program_.native_shares.push_back(
              {pointer(scene_.plan.destinations(step)), pointer(scene_.plan.sources(step))});
        }
      }
      member_begin += member.elements;
    }
  }

  Program& program_;
  std::span<const std::shared_ptr<engine::Communicator>> communicators_;
  const Scene& scene_;
};

}  // namespace

void bind_native(const Step& step, const Scene& scene,
                 std::span<const std::shared_ptr<engine::Communicator>> communicators, Program& program,
                 BoundStep& bound) {
  NativeBinder(program, communicators, scene).bind(step, bound);
}

}  // namespace onesum::exec
