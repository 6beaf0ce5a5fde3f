// The kernel that the emulated GPU's own tests launch: add_number(float* data, int count, float number).
#include "emulated_gpu/kernel_twin.h"

namespace onesum::emulated {
namespace {

struct Arguments {
  float* data;
  int count;
  float number;
};

Arguments read(void** args) {
  return {*static_cast<float**>(args[0]), *static_cast<int*>(args[1]), *static_cast<float*>(args[2])};
}

constexpr KernelTwin kTwins[] = {{
    "add_number",
    [](void** args, std::vector<Footprint>& found) {
      const Arguments arguments = read(args);
      found.push_back({arguments.data, static_cast<std::size_t>(arguments.count) * sizeof(float), true});
    },
    [](void** args) -> void* { return new Arguments(read(args)); },
    [](void* kept, unsigned blocks, unsigned threads_of_block, Translate translate) {
      const auto* const arguments = static_cast<Arguments*>(kept);
      auto* const data = static_cast<float*>(translate(arguments->data));
      const auto threads = static_cast<int>(blocks * threads_of_block);
      for (int i = 0; i < arguments->count && i < threads; ++i) data[i] += arguments->number;
      delete arguments;
    },
}};

}  // namespace

std::span<const KernelTwin> kernel_twins() { return kTwins; }

}  // namespace onesum::emulated
