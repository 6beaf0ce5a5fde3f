// What stands in for a kernel on machines without a GPU: a host function of the same name.
//
// The emulated GPU asks for the twins once, at the first launch. A launch calls `footprint` and
// `copy_arguments` on the launching thread, and `run` on the stream's thread when its turn has come.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace onesum::emulated {

// What a launch reads or writes.
struct Footprint {
  const void* address;
  std::size_t bytes;
  bool is_written;
};

using Translate = void* (*)(const void*);  // a device or pinned address to one that the host can use

struct KernelTwin {
  const char* name;                                               // as registered
  void (*footprint)(void** args, std::vector<Footprint>& found);  // at the launch
  void* (*copy_arguments)(void** args);                           // kept until it ran; run frees them
  void (*run)(void* arguments, unsigned blocks, unsigned threads_of_block, Translate translate);
};

std::span<const KernelTwin> kernel_twins();

}  // namespace onesum::emulated
