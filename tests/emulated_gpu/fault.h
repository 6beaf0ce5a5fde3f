// Tells the host's accesses to device memory, to pinned memory in use and to freed memory from other faults.
#pragma once

namespace onesum::emulated {

// Whatever is not ours goes to the handler that was there before.
void install_fault_handler();

}  // namespace onesum::emulated
