#include "read_only.h"

#include <unordered_map>

namespace onesum::python {
namespace {

// How many tensors say so of an address.
std::unordered_map<const void*, int>& addresses() {
  static auto* const all = new std::unordered_map<const void*, int>;  // never destroyed, as of owners.cc
  return *all;
}

}  // namespace

void remember_read_only(const void* memory) { ++addresses()[memory]; }

void forget_read_only(const void* memory) noexcept {
  const auto found = addresses().find(memory);
  if (found != addresses().end() && --found->second == 0) addresses().erase(found);
}

bool is_read_only(const Tensor& tensor) {
  return tensor.bytes() > 0 && !addresses().empty() && addresses().contains(tensor.memory());
}

}  // namespace onesum::python
