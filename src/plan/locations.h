// Numbers for everything a plan keeps values in: one for each chunk of each buffer but slots and views, which
// belong to their channel.
#pragma once

#include <cstddef>
#include <vector>

#include "plan/plan.h"

namespace onesum::plan {

class Locations {
 public:
  explicit Locations(const Plan& plan) : plan_(plan) {
    begin_.reserve(plan.buffers.size());
    for (const Buffer& buffer : plan.buffers) {
      begin_.push_back(size_);
      if (buffer.role != Role::kSlot && buffer.role != Role::kView) size_ += buffer.window.count;
    }
  }

  std::size_t size() const noexcept { return size_; }
  std::size_t at(std::int32_t buffer, std::uint32_t chunk) const {
    return begin_[static_cast<std::size_t>(buffer)] + (chunk - plan_.buffer(buffer).window.first);
  }

 private:
  const Plan& plan_;
  std::vector<std::size_t> begin_;
  std::size_t size_ = 0;
};

}  // namespace onesum::plan
