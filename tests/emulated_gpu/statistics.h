// Counts what the tested program did, and what it left behind when it ends.
#pragma once

namespace onesum::emulated {

enum class Counted {
  kMalloc,
  kHostAlloc,
  kCopy,
  kFill,
  kLaunch,
  kHostFunction,
  kEventRecord,
  kEventWait,
  kAllReduce,
  kReduce,
  kBroadcast,
};

void count(Counted kind);

}  // namespace onesum::emulated
