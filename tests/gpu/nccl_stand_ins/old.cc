// libnccl.so.2, but too old.
extern "C" __attribute__((visibility("default"))) int ncclGetVersion(int* version) {
  *version = 21701;
  return 0;
}
