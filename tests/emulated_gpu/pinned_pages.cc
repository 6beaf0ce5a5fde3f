#include "emulated_gpu/pinned_pages.h"

#include <sys/mman.h>

namespace onesum::emulated {

int PinnedPages::Page::wanted() const {
  if (is_tolerated || (readers == 0 && writers == 0)) return PROT_READ | PROT_WRITE;
  return writers > 0 ? PROT_NONE : PROT_READ;
}

PinnedPages::PinnedPages(DoubleMapping& mapping)
    : mapping_(&mapping),
      pages_(mapping.bytes() / page_bytes(),
             Page{.readers = 0, .writers = 0, .is_tolerated = false, .protection = PROT_READ | PROT_WRITE}) {}

PinnedPages::Pages PinnedPages::pages_of(const Range& range) const {
  const auto begin = reinterpret_cast<std::uintptr_t>(mapping_->address());
  return {(range.begin - begin) / page_bytes(), (range.end() - begin + page_bytes() - 1) / page_bytes()};
}

void PinnedPages::apply(const Pages& pages) {
  for (std::size_t page = pages.first; page < pages.behind;) {
    const int wanted = pages_[page].wanted();
    std::size_t behind = page;
    bool changes = false;
    for (; behind < pages.behind && pages_[behind].wanted() == wanted; ++behind) {
      changes |= pages_[behind].protection != wanted;
      pages_[behind].protection = wanted;
    }
    if (changes) mapping_->protect(page, behind - page, wanted);
    page = behind;
  }
}

void PinnedPages::close(const Access& access) {
  if (access.range.is_empty()) return;
  const Pages pages = pages_of(access.range);
  for (std::size_t page = pages.first; page < pages.behind; ++page) {
    ++(access.is_written ? pages_[page].writers : pages_[page].readers);
  }
  accesses_.push_back(access);
  apply(pages);
}

void PinnedPages::open(const Clock& known) {
  std::erase_if(accesses_, [&](const Access& access) {
    if (!access.operation->is_before(known)) return false;
    const Pages pages = pages_of(access.range);
    for (std::size_t at = pages.first; at < pages.behind; ++at) {
      Page& page = pages_[at];
      --(access.is_written ? page.writers : page.readers);
      if (page.readers == 0 && page.writers == 0) page.is_tolerated = false;
    }
    apply(pages);
    return true;
  });
}

const Access* PinnedPages::guard(std::uintptr_t address, bool host_writes) const {
  for (const Access& access : accesses_) {
    if ((access.is_written || host_writes) && access.range.touches(address, address + 1)) return &access;
  }
  return nullptr;
}

void PinnedPages::tolerate(std::uintptr_t address) {
  const Pages pages = pages_of(Range{address, 1, 1, 1});
  pages_[pages.first].is_tolerated = true;
  apply(pages);
}

}  // namespace onesum::emulated
