#include "plan/plan.h"

#include <onesum/plan.h>

#include "plan/draw.h"
#include "plan/text.h"
#include "plan/verify.h"

namespace onesum {

Plan::Plan(std::shared_ptr<const plan::Plan> plan, std::vector<std::size_t> pack_elements,
           std::vector<Device> devices)
    : plan_(std::move(plan)), pack_elements_(std::move(pack_elements)), devices_(std::move(devices)) {}

std::string Plan::to_text() const { return plan::to_text(*plan_); }
std::string_view Plan::algorithm() const { return plan_->algorithm; }
std::string_view Plan::order() const { return plan_->order; }
void Plan::verify() const { plan::verify(*plan_); }
std::string Plan::to_svg() const { return plan::to_svg(*plan_); }

}  // namespace onesum
