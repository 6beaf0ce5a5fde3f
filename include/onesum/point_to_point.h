// Messages from one worker process to another.
//
// The kth send to a worker with a tag is what its kth recv from this one with that tag gets. Messages of
// different workers, directions and tags do not wait for each other, nor for the calls on the cluster: each
// of these ways is a group of two (Cluster::group), made when it is first used. The first failure on a way,
// a timeout included, ends it; every later message on it throws that failure. Closing the cluster ends the
// ways of this worker. A way that is in use has a thread, memory for messages and some descriptors (over TCP
// nine of them): tags are for a handful of purposes, not for numbers of messages.
#pragma once

#include <memory>

#include <onesum/cluster.h>
#include <onesum/cross_device_ops.h>
#include <onesum/export.h>
#include <onesum/options.h>
#include <onesum/tensor.h>

namespace onesum {

class ONESUM_API PointToPoint {
 public:
  // The cluster's workers are processes of their own. Where workers make several of these on one cluster,
  // each way is first used in the same order of them on both sides.
  explicit PointToPoint(Cluster cluster);
  PointToPoint(PointToPoint&&) noexcept;
  PointToPoint& operator=(PointToPoint&&) noexcept;
  ~PointToPoint();

  // They return when the tensor may be used again: for something else, and as the message. Types and numbers
  // of elements must be those of the other side, else the recv throws invalid_argument, and so does the send,
  // or, if its message had left already, the next one. Of the options the timeout
  // counts; a recv waits for its send, and the first send on a way for its recv.
  void send(const Tensor& tensor, int to, int tag = 0, const CommunicationOptions& options = {});
  void recv(const Tensor& tensor, int from, int tag = 0, const CommunicationOptions& options = {});

  // The same without waiting.
  Work start_send(const Tensor& tensor, int to, int tag = 0, const CommunicationOptions& options = {});
  Work start_recv(const Tensor& tensor, int from, int tag = 0, const CommunicationOptions& options = {});

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace onesum
