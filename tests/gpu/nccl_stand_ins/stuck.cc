// libnccl.so.2 in which the end of a communicator waits for ever, as NCCL's does for processes of the same
// machine that are stopped. Everything else is found in the emulated GPU, which it is linked to.
#include <unistd.h>

#define ONESUM_STUCK(name)                                                     \
  extern "C" __attribute__((visibility("default"))) int name(void* /*comm*/) { \
    for (;;) pause();                                                          \
  }

ONESUM_STUCK(ncclCommDestroy)
ONESUM_STUCK(ncclCommAbort)
