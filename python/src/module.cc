#include <onesum/version.h>

#include "bindings.h"
#include "owners.h"

NB_MODULE(_core, module) {
  using namespace onesum::python;
  module.doc() = "The C++ library. Use the names in `onesum`.";
  module.attr("version") = ONESUM_VERSION;
  prepare_for_exit(module);
  bind_errors(module);
  bind_options(module);
  bind_descriptions(module);
  bind_tensor(module);
  bind_values(module);
  bind_variables(module);
  bind_cluster(module);
  bind_plan(module);
  bind_collective(module);
  bind_work(module);
  bind_cross_device_ops(module);
  bind_all_reduce(module);
  bind_point_to_point(module);
  bind_strategy(module);
}
