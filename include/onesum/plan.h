// The schedule of a call, to look at.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <onesum/device.h>
#include <onesum/dtype.h>
#include <onesum/export.h>
#include <onesum/shape.h>

namespace onesum {

namespace plan {
struct Plan;
}

// What a reduction would be given, without the memory: for planning.
struct ReduceSpec {
  DType dtype = DType::kFloat32;
  Shape shape;
  std::vector<Device> replicas;
  std::vector<Device> destinations;  // may be those of the replicas, in any order
};

class ONESUM_API Plan {
 public:
  explicit Plan(std::shared_ptr<const plan::Plan> plan, std::vector<std::size_t> pack_elements,
                std::vector<Device> devices);

  std::string to_text() const;
  std::string_view algorithm() const;
  std::string_view order() const;  // of additions: "canonical", or what it is instead
  // Proves that the plan computes what it should; throws an Error that names the steps at fault.
  void verify() const;
  std::string to_svg() const;

  const plan::Plan& value() const noexcept { return *plan_; }  // for the plan tools
  const std::vector<std::size_t>& pack_elements() const noexcept { return pack_elements_; }
  const std::vector<Device>& devices() const noexcept { return devices_; }  // by number in the plan

 private:
  std::shared_ptr<const plan::Plan> plan_;
  std::vector<std::size_t> pack_elements_;
  std::vector<Device> devices_;
};

}  // namespace onesum
