#include "exec/program.h"

namespace onesum::exec {

Instance::Instance(std::shared_ptr<const Program> program) : program_(std::move(program)) {
  const Program& p = *program_;
  bases_.resize(p.tensor_slots + p.temp_bytes.size());
  pointers_.resize(p.pointers.size());
  done_.resize(p.lanes.size());
  messages_.resize(p.channels);
  lanes_.resize(p.lanes.size());
  try {
    for (std::size_t t = 0; t < p.temp_bytes.size(); ++t) {
      if (p.temp_bytes[t] == 0) continue;
      bases_[p.tensor_slots + t] = static_cast<std::byte*>(p.engine->allocate(p.temp_bytes[t]));
    }
  } catch (...) {
    release_temporaries();
    throw;
  }
}

Instance::~Instance() { release_temporaries(); }

void Instance::release_temporaries() noexcept {
  const Program& p = *program_;
  for (std::size_t t = 0; t < p.temp_bytes.size(); ++t) {
    std::byte* const memory = bases_[p.tensor_slots + t];
    if (p.temp_bytes[t] != 0 && memory != nullptr) p.engine->release(memory, p.temp_bytes[t]);
  }
}

void Instance::resolve() noexcept {
  const std::vector<PointerSource>& sources = program_->pointers;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    pointers_[i] = bases_[sources[i].slot] + sources[i].byte_offset;
  }
}

}  // namespace onesum::exec
