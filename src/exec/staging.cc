#include "exec/staging.h"

#include <algorithm>
#include <map>
#include <utility>

namespace onesum::exec {
namespace {

using plan::Operand;

// What a step has of staging memory at a time, and where operands begin in it.
constexpr std::size_t kStagingBytes = std::size_t{4} << 20;
constexpr std::size_t kStagingAlignment = 64;

class Divider {
 public:
  explicit Divider(const Scene& scene) : scene_(scene) {}

  DividedWork divide(Work work) {
    std::size_t bytes = 0;  // of staging memory, for an element
    for (View& source : work.sources) {
      if (scene_.reaches(work.unit, *source.operand)) continue;
      source.staged = 0;
      bytes += size_of(scene_.buffer(*source.operand).element);
    }
    Copies copies;
    for (const View& destination : work.destinations) {
      if (scene_.reaches(work.unit, *destination.operand)) continue;
      copies[*scene_.owner_of(*destination.operand)].push_back(destination);
    }
    if (!copies.empty()) bytes += size_of(work.form.output);
    if (bytes == 0) return {{std::move(work)}, 0};
    std::erase_if(work.destinations,
                  [&](const View& view) { return !scene_.reaches(work.unit, *view.operand); });

    const plan::Extent whole = work.range;
    const std::size_t most = elements_at_a_time(work, bytes);
    std::size_t done = 0;
    do {
      work.range = {whole.offset + done, std::min(most, whole.length - done)};
      done += work.range.length;
      work.sends = done == whole.length;
      add_part(work, copies);
    } while (done < whole.length);
    return std::move(divided_);
  }

 private:
  using Copies = std::map<Unit, std::vector<View>>;  // of the result, by who makes them

  std::size_t rows_of(const Work& work) const {
    return scene_.table(scene_.buffer(*work.sources.front().operand).pack).outer;
  }

  // Rows are staged whole, and so are messages to other processes: before the first part of one is written
  // its receiver must have read the one before, and the executor asks where a message is sent.
  std::size_t elements_at_a_time(const Work& work, std::size_t bytes) const {
    constexpr std::size_t kGrain = 64;
    const bool has_message =
        std::ranges::any_of(scene_.plan.destinations(*work.step), [&](const Operand& operand) {
          return scene_.buffer(operand).role == plan::Role::kSlot && scene_.owner_of(operand) == kHost;
        });
    if (has_message || rows_of(work) != 1) return std::max<std::size_t>(1, work.range.length);
    return std::max(kGrain, kStagingBytes / bytes / kGrain * kGrain);
  }

  void add_part(Work work, const Copies& copies) {
    std::size_t used = 0;  // bytes of staging memory
    const auto stage = [&](Element element) {
      const std::size_t begin = used;
      const std::size_t bytes = work.range.length * rows_of(work) * size_of(element);
      used += (bytes + kStagingAlignment - 1) / kStagingAlignment * kStagingAlignment;
      return begin;
    };
    for (View& source : work.sources) {
      if (!source.staged) continue;
      const Element element = scene_.buffer(*source.operand).element;
      source.staged = stage(element);
      const View copy{source.operand, source.staged};
      add(copy_of(work, *scene_.owner_of(*source.operand), element, {copy}, {{source.operand}}));
    }
    if (copies.empty()) {
      add(work);
    } else {
      const View result{copies.begin()->second.front().operand, stage(work.form.output)};
      work.destinations.push_back(result);
      add(work);
      for (const auto& [unit, destinations] : copies) {
        Work copy = copy_of(work, unit, work.form.output, destinations, {result});
        copy.sends = work.sends;
        add(std::move(copy));
      }
    }
    divided_.staging_bytes = std::max(divided_.staging_bytes, used);
  }

  void add(Work work) { divided_.works.push_back(std::move(work)); }

  static Work copy_of(const Work& work, Unit unit, Element element, std::vector<View> destinations,
                      std::vector<View> sources) {
    Work copy{work.step, unit, std::move(destinations), std::move(sources)};
    copy.form.input = copy.form.accumulator = copy.form.output = element;
    copy.range = work.range;
    copy.sends = false;
    return copy;
  }

  const Scene& scene_;
  DividedWork divided_;
};

}  // namespace

DividedWork divided(Work work, const Scene& scene) { return Divider(scene).divide(std::move(work)); }

}  // namespace onesum::exec
