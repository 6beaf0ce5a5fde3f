// The extension onesum._core: the C++ API under the same names, without logic of its own.
//
// One function for each subject, called in this order by module.cc. Whatever is read (nouns) is a property in
// Python; what does something (verbs) and predicates (is_…) are methods. Enumerators lose their k: kSum is
// SUM.
#pragma once

#include <nanobind/nanobind.h>

namespace onesum::python {

namespace nb = nanobind;

void bind_errors(nb::module_& module);
void bind_options(nb::module_& module);
void bind_descriptions(nb::module_& module);  // Device, DType, Shape
void bind_tensor(nb::module_& module);
void bind_values(nb::module_& module);
void bind_variables(nb::module_& module);
void bind_cluster(nb::module_& module);
void bind_plan(nb::module_& module);
void bind_collective(nb::module_& module);
void bind_work(nb::module_& module);
void bind_cross_device_ops(nb::module_& module);
void bind_all_reduce(nb::module_& module);
void bind_point_to_point(nb::module_& module);
void bind_strategy(nb::module_& module);

}  // namespace onesum::python
