// Copies between the memory of any two devices of this process. They are done when these return.
#pragma once

#include <onesum/tensor.h>

namespace onesum::api {

// As many bytes; overlapping memory of the host is allowed. What the caller's streams had to do before is
// waited for.
void copy(const Tensor& from, const Tensor& to);

// A tensor of the same contents on another device.
Tensor copy_on(const Tensor& tensor, const Device& device);

// Itself if its memory is the device's, with what its stream had to do waited for; else a copy there.
Tensor ready_on(const Tensor& tensor, const Device& device);

// Itself if its memory is the host's, else a copy on CPU:0.
Tensor on_host(const Tensor& tensor);
IndexedSlices on_host(const IndexedSlices& slices);

// Whether its memory is the host's.
bool is_on_host(const Tensor& tensor);

}  // namespace onesum::api
