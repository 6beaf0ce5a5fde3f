// Builds a plan step by step; what algorithms write with. It only records: plan/verify.h judges.
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "plan/plan.h"

namespace onesum::plan {

class Builder {
 public:
  Builder(std::string algorithm, std::vector<std::int32_t> device_rank);

  std::int32_t add_pack(Pack pack);
  std::int32_t add_channel(Channel channel);
  std::int32_t add_group(std::vector<std::int32_t> devices);  // in any order; one that is there is not added
  std::int32_t add_lane(std::int32_t rank);

  // Buffers. The window is the whole pack unless given; an input of a pack with Contract::kConcatenate has
  // room for its own chunk only. They return the buffer's number.
  std::int32_t input(std::int32_t pack, std::int32_t replica, Element element);
  std::int32_t output(std::int32_t pack, std::int32_t destination);
  std::int32_t inout(std::int32_t pack, std::int32_t replica, Element element);
  std::int32_t temp(std::int32_t pack, std::int32_t device, Element element, Chunks window);
  std::int32_t slot(std::int32_t pack, std::int32_t channel, Element element);
  std::int32_t view(std::int32_t pack, std::int32_t channel, Element element);

  void set_window(std::int32_t buffer, Chunks window);

  Chunks all_chunks(std::int32_t pack) const;
  Operand whole(std::int32_t buffer) const;  // all chunks of its window

  // Steps, appended to a lane. They return the step's number in it, for wait().
  std::int32_t copy(std::int32_t lane, std::int32_t device, std::span<const Operand> destinations,
                    Operand source);
  std::int32_t reduce(std::int32_t lane, std::int32_t device, std::span<const Operand> destinations,
                      std::span<const Operand> sources, Element accumulator, std::int64_t divisor = 1,
                      Combine combine = Combine::kSum);
  std::int32_t call(std::int32_t lane, std::int32_t device, Operand destination,
                    std::span<const Operand> sources, Element accumulator, std::int64_t divisor = 1);
  // On the lane's rank, which owns a device of the group.
  std::int32_t native(std::int32_t lane, Collective collective, std::int32_t group,
                      std::span<const Operand> destinations, std::span<const Operand> sources);
  std::int32_t recv(std::int32_t lane, std::int32_t channel, Operand view);
  std::int32_t release(std::int32_t lane, std::int32_t channel);
  std::int32_t counts(std::int32_t lane, std::int32_t pack);
  std::int32_t wait(std::int32_t lane, std::int32_t other_lane, std::int32_t step_number);

  void claim_order(std::string order);  // unless it is canonical
  Plan take() &&;                       // its operands laid out in the order of lanes and steps

  // What is there so far; and to forget the steps of the one lane that has some, for plans that are read
  // while they are written. Their memory is left to the next lane that is written.
  const Plan& plan() const noexcept { return plan_; }
  void drop_steps(std::int32_t lane);

 private:
  std::int32_t add_buffer(Buffer buffer);
  Step& append(std::int32_t lane, Op op, std::span<const Operand> destinations,
               std::span<const Operand> sources);
  std::int32_t last_step(std::int32_t lane) const;  // its number

  Plan plan_;
  std::int32_t num_temps_ = 0;
  std::vector<Step> dropped_;  // none; their memory
};

}  // namespace onesum::plan
