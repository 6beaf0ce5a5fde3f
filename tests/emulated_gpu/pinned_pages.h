// Closes pages of pinned memory to the host while operations use them that the host does not know to be
// complete: for reading and writing where an operation writes, for writing where it only reads.
//
// The world's lock guards it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "emulated_gpu/mapping.h"
#include "emulated_gpu/operation.h"

namespace onesum::emulated {

class PinnedPages {
 public:
  explicit PinnedPages(DoubleMapping& mapping);

  void close(const Access& access);
  // Opens what only operations used that are in `known`.
  void open(const Clock& known);

  // Which access forbids the host to touch this byte; none where another byte of the page is meant.
  const Access* guard(std::uintptr_t address, bool host_writes) const;
  // Lets the host in, until no operation uses the page any more.
  void tolerate(std::uintptr_t address);

 private:
  struct Page {
    std::uint32_t readers = 0;
    std::uint32_t writers = 0;
    bool is_tolerated = false;
    int protection;
    int wanted() const;
  };
  struct Pages {
    std::size_t first;
    std::size_t behind;
  };
  Pages pages_of(const Range& range) const;
  void apply(const Pages& pages);

  DoubleMapping* mapping_;
  std::vector<Page> pages_;
  std::vector<Access> accesses_;
};

}  // namespace onesum::emulated
