// Which borrowed memory the library may only read. A Tensor does not know; the extension does, by address,
// and refuses to write to it. With the GIL.
#pragma once

#include <onesum/tensor.h>

namespace onesum::python {

void remember_read_only(const void* memory);
void forget_read_only(const void* memory) noexcept;
bool is_read_only(const Tensor& tensor);

}  // namespace onesum::python
