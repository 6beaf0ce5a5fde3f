#include "engine/twin_runs.h"

#include <algorithm>
#include <map>
#include <sstream>
#include <string_view>

#include "emulated_gpu/kernel_twin.h"
#include "engine/cuda/launch_arguments.h"
#include "engine/guarded.h"
#include "engine/host/reduce_kernels.h"

namespace onesum::engine::testing {
namespace {

using emulated::Footprint;
using emulated::KernelTwin;

// Between an address of the host and the one that the kernel is given for it.
constexpr std::ptrdiff_t kDistance = std::ptrdiff_t{1} << 52;

std::byte* device_address(std::byte* host) { return host + kDistance; }
void* host_address(const void* device) {
  return const_cast<std::byte*>(static_cast<const std::byte*>(device)) - kDistance;
}

const KernelTwin* find_twin(std::string_view symbol) {
  const auto twins = emulated::kernel_twins();
  const auto found =
      std::find_if(twins.begin(), twins.end(), [&](const KernelTwin& twin) { return twin.name == symbol; });
  return found == twins.end() ? nullptr : &*found;
}

ReduceForm with_merges(const TwinRun& run) {
  ReduceForm form = run.form;
  form.merges = run.merges;
  return form;
}
bool is_wide(const TwinRun& run, std::size_t source) {
  return !run.is_wide.empty() && run.is_wide[source] != 0;
}
Element type_of(const TwinRun& run, std::size_t source) {
  return is_wide(run, source) ? run.form.accumulator : run.form.input;
}

Bytes host_result(const ReduceForm& form, const std::vector<Bytes>& contents, std::size_t count) {
  Bytes result(count * size_of(form.output));
  std::vector<const std::byte*> sources;
  for (const Bytes& content : contents) sources.push_back(content.data());
  ReduceForm one = form;
  one.destinations = 1;
  std::byte* const destination = result.data();
  host::find_reduce_kernel(one)({&one, &destination, sources.data(), 0, count});
  return result;
}

// As exec does it: what is not wide becomes so first.
Bytes expected_result(const TwinRun& run, const std::vector<Bytes>& contents, std::size_t count) {
  ReduceForm form = with_merges(run);
  if (run.is_wide.empty()) return host_result(form, contents, count);
  static constexpr std::uint8_t kOneSource[] = {0};
  const ReduceForm widening{form.input, form.accumulator, form.accumulator, 1, kOneSource};
  std::vector<Bytes> wide;
  for (std::size_t i = 0; i < contents.size(); ++i) {
    wide.push_back(is_wide(run, i) ? contents[i] : host_result(widening, {contents[i]}, count));
  }
  form.input = form.accumulator;
  return host_result(form, wide, count);
}

// The memory of a piece: destinations, then sources.
struct Memory {
  std::vector<Guarded> buffers;
  std::vector<std::byte*> pointers;  // as the kernel gets them
};

Memory make_memory(const TwinRun& run, const TwinPiece& piece, const std::vector<Bytes>& contents) {
  Memory memory;
  const std::size_t destinations = run.form.destinations;
  for (std::size_t i = 0; i < destinations + contents.size(); ++i) {
    const std::size_t misalignment = piece.misalignment + i * piece.misalignment_step;
    if (i < destinations) {
      memory.buffers.emplace_back(piece.count * size_of(run.form.output), misalignment);
    } else {
      memory.buffers.emplace_back(contents[i - destinations], misalignment);
    }
  }
  for (std::size_t i = 0; i < memory.buffers.size(); ++i) {
    const Element type = i < destinations ? run.form.output : type_of(run, i - destinations);
    memory.pointers.push_back(device_address(memory.buffers[i].data()) - piece.first * size_of(type));
  }
  if (run.aliased >= 0) {
    memory.pointers[0] = memory.pointers[destinations + static_cast<std::size_t>(run.aliased)];
  }
  return memory;
}

// Bytes read and written by address, which launches add to.
using Touched = std::map<std::pair<const void*, bool>, std::size_t>;

void add_expected(const TwinRun& run, const TwinPiece& piece, const Memory& memory, Touched& expected) {
  for (std::size_t i = 0; piece.count != 0 && i < memory.pointers.size(); ++i) {
    const bool is_written = i < run.form.destinations;
    const std::size_t bytes = size_of(is_written ? run.form.output : type_of(run, i - run.form.destinations));
    expected[{memory.pointers[i] + piece.first * bytes, is_written}] += piece.count * bytes;
  }
}

std::string launch_all(const TwinRun& run, const std::vector<cuda::LaunchPiece>& pieces, Touched& touched) {
  const cuda::LaunchWriter writer(with_merges(run), run.is_wide);
  const KernelTwin* const twin = find_twin(writer.kernel().symbol);
  if (twin == nullptr) return "no twin is called " + std::string(writer.kernel().symbol);
  for (std::size_t done = 0; done < pieces.size();) {
    cuda::ReduceArguments arguments;
    const std::size_t taken = writer.write(std::span(pieces).subspan(done), arguments);
    if (taken == 0) return "a launch has no room for a piece";
    done += taken;
    void* args[] = {&arguments};
    std::vector<Footprint> footprints;
    twin->footprint(args, footprints);
    for (const Footprint& f : footprints) touched[{f.address, f.is_written}] += f.bytes;
    void* const copy = twin->copy_arguments(args);
    std::fill_n(arguments.words, cuda::ReduceArguments::kWords, 0);  // the copy is what counts
    twin->run(copy, run.blocks, run.threads_of_block, &host_address);
  }
  return {};
}

std::string check_piece(const TwinRun& run, const Memory& memory, const std::vector<Bytes>& contents,
                        std::size_t count) {
  const Bytes expected = expected_result(run, contents, count);
  const std::size_t destinations = run.form.destinations;
  const bool is_copy = cuda::is_copy(with_merges(run));
  for (std::size_t i = 0; i < memory.buffers.size(); ++i) {
    const bool is_aliased = run.aliased >= 0 && i == destinations + static_cast<std::size_t>(run.aliased);
    if (!memory.buffers[i].guards_are_intact()) return "wrote beyond buffer " + std::to_string(i);
    const Bytes found = memory.buffers[i].content();
    if (is_aliased || (i < destinations && (i != 0 || run.aliased < 0))) {
      const std::string wrong = difference(run.form.output, found, expected);
      if (!wrong.empty()) return "destination " + std::to_string(i) + ": " + wrong;
      if (is_copy && found != expected) return "a copy lost bits";
    } else if (i >= destinations && found != contents[i - destinations]) {
      return "changed source " + std::to_string(i - destinations);
    }
  }
  return {};
}

}  // namespace

std::string describe(const TwinRun& run) {
  std::ostringstream text;
  text << to_string(run.form.input) << "/" << to_string(run.form.accumulator) << "/"
       << to_string(run.form.output) << " divisor " << run.form.divisor << " destinations "
       << run.form.destinations << " aliased " << run.aliased << " grid " << run.blocks << "x"
       << run.threads_of_block << " merges";
  for (const std::uint8_t merges : run.merges) text << " " << int{merges};
  text << " wide";
  for (const std::uint8_t wide : run.is_wide) text << " " << int{wide};
  text << " pieces";
  for (const TwinPiece& piece : run.pieces) {
    text << " [" << piece.first << "+" << piece.count << " misaligned " << piece.misalignment << "+i*"
         << piece.misalignment_step << "]";
  }
  return text.str();
}

Contents random_contents(const TwinRun& run, std::mt19937& random) {
  Contents contents;
  for (const TwinPiece& piece : run.pieces) {
    std::vector<Bytes>& sources = contents.emplace_back();
    for (std::size_t i = 0; i < run.merges.size(); ++i) {
      sources.push_back(random_elements(type_of(run, i), piece.count, random));
    }
  }
  return contents;
}

std::string difference_from_host(const TwinRun& run, const Contents& contents) {
  std::vector<Memory> memory;
  std::vector<cuda::LaunchPiece> pieces;
  Touched expected;
  Touched touched;
  for (std::size_t p = 0; p < run.pieces.size(); ++p) {
    memory.push_back(make_memory(run, run.pieces[p], contents[p]));
    add_expected(run, run.pieces[p], memory[p], expected);
  }
  for (std::size_t p = 0; p < run.pieces.size(); ++p) {
    pieces.push_back({memory[p].pointers.data(), run.pieces[p].first, run.pieces[p].count});
  }
  if (const std::string wrong = launch_all(run, pieces, touched); !wrong.empty()) return wrong;
  if (touched != expected) return "the footprints are not those of the pieces";
  for (std::size_t p = 0; p < run.pieces.size(); ++p) {
    const std::string wrong = check_piece(run, memory[p], contents[p], run.pieces[p].count);
    if (!wrong.empty()) return "piece " + std::to_string(p) + ", " + wrong;
  }
  return {};
}

}  // namespace onesum::engine::testing
