#include <algorithm>
#include <cstdint>
#include <memory>

#include "emulated_gpu/checked_reduce_body.h"
#include "emulated_gpu/kernel_twin.h"
#include "engine/cuda/reduce_forms.h"

namespace onesum::emulated {
namespace {

namespace cuda = engine::cuda;
namespace element_types = cuda::element_types;
using cuda::ReduceArguments;
using cuda::ReduceStep;

// Who takes what depends on the number of threads, what comes out does not: a large grid's would take long
// to find nothing to do.
constexpr std::uint64_t kMaxThreads = 61;

// Calls visit(source, is_wide) for every source of a piece.
template <class Visit>
void for_each_source(const ReduceArguments& arguments, Visit visit) {
  std::uint32_t source = 0;
  for (std::uint32_t i = 0; i < arguments.steps; ++i) {
    const ReduceStep::Kind kind = arguments.step(i).kind;
    const int sources = kind == ReduceStep::kFour ? 4 : kind == ReduceStep::kTwo ? 2 : 1;
    for (int k = 0; k < sources; ++k) visit(source++, kind == ReduceStep::kOneWide);
  }
}

template <class Input, class Accumulator, class Output, bool kIsSum>
struct Twin {
  static void footprint(void** args, std::vector<Footprint>& found) {
    const auto& arguments = *static_cast<const ReduceArguments*>(args[0]);
    for (std::uint32_t index = 0; index < arguments.pieces; ++index) {
      const std::uint32_t piece = arguments.piece(index);
      const std::uint64_t count = arguments.count(piece);
      for (std::uint32_t i = 0; i < arguments.destinations; ++i) {
        found.push_back({arguments.destination(piece, i), count * sizeof(Output), true});
      }
      for_each_source(arguments, [&](std::uint32_t source, bool is_wide) {
        const std::size_t bytes = is_wide ? sizeof(Accumulator) : sizeof(Input);
        found.push_back({arguments.source(piece, source), count * bytes, false});
      });
    }
  }

  static void* copy_arguments(void** args) {
    return new ReduceArguments(*static_cast<const ReduceArguments*>(args[0]));
  }

  static void run(void* arguments, unsigned blocks, unsigned threads_of_block, Translate translate) {
    const std::unique_ptr<ReduceArguments> own(static_cast<ReduceArguments*>(arguments));
    for (std::uint32_t index = 0; index < own->pieces; ++index) {
      std::uint64_t* const pointers = own->words + own->piece(index) + 2;
      for (std::uint32_t i = 0; i < own->piece_words() - 2; ++i) {
        const auto* address =
            reinterpret_cast<const void*>(pointers[i]);  // NOLINT(performance-no-int-to-ptr)
        pointers[i] = reinterpret_cast<std::uintptr_t>(translate(address));
      }
    }
    const std::uint64_t threads = std::min(std::uint64_t{blocks} * threads_of_block, kMaxThreads);
    for (std::uint64_t thread = 0; thread < threads; ++thread) {
      cuda::reduce_body<Input, Accumulator, Output, kIsSum>(*own, thread, threads);
    }
  }
};

#define ONESUM_QUOTE(name) #name
#define ONESUM_QUOTE_EXPANDED(name) ONESUM_QUOTE(name)
template <class Input, class Accumulator, class Output, bool kIsSum>
constexpr KernelTwin twin_named(const char* name) {
  using Its = Twin<Input, Accumulator, Output, kIsSum>;
  return {name, &Its::footprint, &Its::copy_arguments, &Its::run};
}
#define ONESUM_TWIN(input, accumulator, output)                                              \
  twin_named<element_types::input, element_types::accumulator, element_types::output, true>( \
      ONESUM_QUOTE_EXPANDED(ONESUM_CUDA_KERNEL(input, accumulator, output))),
#define ONESUM_COMBINE_TWIN(input, accumulator, output)                                       \
  twin_named<element_types::input, element_types::accumulator, element_types::output, false>( \
      ONESUM_QUOTE_EXPANDED(ONESUM_CUDA_COMBINE_KERNEL(input, accumulator, output))),
constexpr KernelTwin kTwins[] = {ONESUM_CUDA_FORMS(ONESUM_TWIN)
                                     ONESUM_CUDA_COMBINE_FORMS(ONESUM_COMBINE_TWIN)};

}  // namespace

std::span<const KernelTwin> kernel_twins() { return kTwins; }

}  // namespace onesum::emulated
