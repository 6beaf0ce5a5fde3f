// Which all-reduce algorithm takes which tensors.
//
//   AllReduceSpecs("xring")                                        one algorithm for all tensors
//   AllReduceSpecs("pscpu:2k:pscpu#2:64k:xring")                   up to 2 KiB, up to 64 KiB, the rest
//   AllReduceSpecs({{"nccl", 2, 1024}, {"pscpu/pscpu", 2, -1}})    the same as values
//
// Algorithms, and what shards and limits mean: docs/semantics.md, section 6.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <onesum/export.h>

namespace onesum {

// One line of a list that is read from the top: tensors of at most `limit` bytes, of those that no earlier
// line took, are reduced by `alg` in `shards` parallel pieces. A negative limit is none.
struct AllReduceSpec {
  std::string alg;
  int shards = 1;
  std::int64_t limit = -1;  // bytes of the tensor before packing, inclusive
  friend bool operator==(const AllReduceSpec&, const AllReduceSpec&) = default;
};

// Such a list, always valid: one line or more of known algorithms and 1 to 1024 shards; limits ascend, and
// the last one, and no other, is none. Anything else is invalid_argument naming the line, what was found and
// what was expected.
class ONESUM_API AllReduceSpecs {
 public:
  // Text: alg[#shards] { ":" limit ":" alg[#shards] }. A limit is a number of bytes, with k, M, G or T (in
  // either case) for powers of 1024; the last one is none.
  AllReduceSpecs(std::string_view text);  // NOLINT(google-explicit-constructor): spec strings are specs
  AllReduceSpecs(const std::string& text) : AllReduceSpecs(std::string_view(text)) {}  // NOLINT
  AllReduceSpecs(const char* text) : AllReduceSpecs(std::string_view(text)) {}         // NOLINT
  AllReduceSpecs(AllReduceSpec spec);                          // NOLINT(google-explicit-constructor)
  AllReduceSpecs(std::initializer_list<AllReduceSpec> specs);  // NOLINT(google-explicit-constructor)
  AllReduceSpecs(std::vector<AllReduceSpec> specs);            // NOLINT(google-explicit-constructor)

  std::span<const AllReduceSpec> values() const noexcept { return specs_; }  // no limit is always -1
  std::string to_string() const;                                             // reads back to the same list

  friend bool operator==(const AllReduceSpecs&, const AllReduceSpecs&) = default;

 private:
  std::vector<AllReduceSpec> specs_;
};

}  // namespace onesum
