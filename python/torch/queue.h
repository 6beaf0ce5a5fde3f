// Works that run one after the other: those of a process group, or of one way of its messages.
//
// A work that somebody waits for at once runs on that thread, after all that came before it; any other on the
// queue's own thread, which is started with the first of them. Threads: any.
#pragma once

#include <chrono>
#include <memory>

#include "work.h"

namespace onesum::bridge {

class WorkQueue {
 public:
  WorkQueue();
  ~WorkQueue();  // when all works are done; from one of them, at once
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;

  void run_now(CallWork& work);  // returns when it is done
  void post(c10::intrusive_ptr<CallWork> work);
  void drain();  // until all works so far are done
  // Of all queues of the process, but no longer than this.
  static void drain_all(std::chrono::milliseconds longest);

 private:
  struct Core;
  struct All;
  std::shared_ptr<Core> core_;
};

}  // namespace onesum::bridge
