#include "engine/cuda/launch_arguments.h"

#include <algorithm>
#include <string>

#include "engine/reduce_checks.h"

namespace onesum::engine::cuda {
namespace {

void check_wide(const ReduceForm& form, std::span<const std::uint8_t> is_wide) {
  if (is_wide.empty()) return;
  if (is_wide.size() != form.merges.size()) {
    refuse_reduce("a reduce of " + std::to_string(form.merges.size()) + " sources has " +
                  std::to_string(is_wide.size()) + " flags for wide ones");
  }
  if (is_copy(form) && is_wide[0] != 0 && form.accumulator != form.input) {
    refuse_reduce("a copy of " + std::string(to_string(form.input)) + " cannot have a source of " +
                  std::string(to_string(form.accumulator)) +
                  ": that is a conversion, with this as its input");
  }
}

}  // namespace

LaunchWriter::LaunchWriter(const ReduceForm& form, std::span<const std::uint8_t> is_wide)
    : kernel_((check_wide(form, is_wide), find_kernel_form(form))),
      divisor_(form.divisor),
      destinations_(form.destinations),
      steps_(form.merges, form.input == form.accumulator ? std::span<const std::uint8_t>() : is_wide) {
  if (form.input == form.accumulator || is_wide.empty()) return;
  for (std::size_t place = 0; place < steps_.num_sources; ++place) {
    if (is_wide[steps_.order[place]] != 0) wide_[place / 64] |= std::uint64_t{1} << place % 64;
  }
}

std::size_t LaunchWriter::write(std::span<const LaunchPiece> pieces,
                                ReduceArguments& arguments) const noexcept {
  arguments.divisor = divisor_;
  arguments.combine = kernel_.combine;
  arguments.pieces = 0;
  arguments.destinations = static_cast<std::uint16_t>(destinations_);
  arguments.sources = static_cast<std::uint16_t>(steps_.num_sources);
  arguments.steps = static_cast<std::uint16_t>(steps_.num_steps);
  std::fill_n(arguments.words, arguments.step_words(), 0);
  for (std::size_t i = 0; i < steps_.num_steps; ++i) {
    arguments.words[i / 8] |= std::uint64_t{steps_.steps[i].code()} << i % 8 * 8;
  }
  std::size_t taken = 0;
  for (const LaunchPiece& piece : pieces) {
    if (piece.count != 0) {
      if (arguments.piece(arguments.pieces + 1) > ReduceArguments::kWords) break;
      write_piece(piece, arguments);
      ++arguments.pieces;
    }
    ++taken;
  }
  return taken;
}

void LaunchWriter::write_piece(const LaunchPiece& piece, ReduceArguments& arguments) const noexcept {
  std::uint64_t* const words = arguments.words + arguments.piece(arguments.pieces);
  std::uint64_t* const addresses = words + 2;
  const std::size_t first = piece.first * kernel_.parts;
  for (std::size_t i = 0; i < destinations_ + steps_.num_sources; ++i) {
    const std::size_t pointer = i < destinations_ ? i : destinations_ + steps_.order[i - destinations_];
    addresses[i] = reinterpret_cast<std::uintptr_t>(piece.pointers[pointer]) + first * element_bytes(i);
  }
  words[0] = piece.count * kernel_.parts;
  words[1] = division_of(addresses, words[0]);
}

// The second word of a piece: how many elements lie before the first address from which on all pointers are
// aligned for groups; all if there is none.
std::uint64_t LaunchWriter::division_of(const std::uint64_t* addresses, std::uint64_t count) const noexcept {
  const std::size_t group = elements_of_group(size_of(kernel_.input), size_of(kernel_.output));
  std::uint64_t head = 0;
  std::uint64_t period = 1;  // heads that differ by this are as good
  bool is_aligned = true;
  for (std::size_t i = 0; i < destinations_ + steps_.num_sources; ++i) {
    const std::size_t bytes = element_bytes(i);
    if (addresses[i] % bytes != 0) return count | ReduceArguments::kBytewise;
    const std::uint64_t own_period = group_alignment(group, bytes) / bytes;
    const std::uint64_t own_head = (0 - addresses[i] / bytes) % own_period;
    is_aligned = is_aligned && head % std::min(period, own_period) == own_head % std::min(period, own_period);
    if (own_period > period) {
      period = own_period;
      head = own_head;
    }
  }
  return is_aligned ? std::min(head, count) : count;
}

std::uint64_t LaunchWriter::items(const ReduceArguments& arguments) const noexcept {
  const std::size_t group = elements_of_group(size_of(kernel_.input), size_of(kernel_.output));
  std::uint64_t items = 0;
  for (std::uint32_t i = 0; i < arguments.pieces; ++i) {
    const std::uint32_t piece = arguments.piece(i);
    const std::uint64_t count = arguments.count(piece);
    items += count - (count - arguments.head(piece)) / group * (group - 1);
  }
  return items;
}

bool LaunchWriter::is_wide(std::size_t place) const noexcept {
  return (wide_[place / 64] >> place % 64 & 1) != 0;
}

std::size_t LaunchWriter::element_bytes(std::size_t place) const noexcept {
  if (place < destinations_) return size_of(kernel_.output);
  return size_of(is_wide(place - destinations_) ? kernel_.accumulator : kernel_.input);
}

}  // namespace onesum::engine::cuda
