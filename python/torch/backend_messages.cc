// Messages between members of a process group, and barriers.
#include <utility>

#include "backend.h"
#include "values.h"

namespace onesum::bridge {
namespace {

PointToPoint& messages_of(Group& group) {
  const std::lock_guard lock(group.mutex);
  if (!group.messages) group.messages.emplace(*group.cluster);
  return *group.messages;
}

}  // namespace

OnesumBackend::WorkPtr OnesumBackend::start_message(Tensors& tensors, const Way& way) {
  const char* const name = way.sends ? "send" : "recv";
  const at::Tensor& tensor = only_one_of(tensors, name);
  check_dense(tensor, name);
  TORCH_CHECK_VALUE(way.other >= 0 && way.other < size_ && way.other != rank_, "onesum: ", name,
                    way.sends ? " to" : " from", " rank ", way.other, "; expected another one of 0 to ",
                    size_ - 1, " than this one, ", rank_);
  WorkQueue* queue = nullptr;
  {
    const std::lock_guard lock(mutex_);
    std::unique_ptr<WorkQueue>& its = ways_[way];
    if (!its) its = std::make_unique<WorkQueue>();
    queue = its.get();
  }
  Call call{name, way.sends ? c10d::OpType::SEND : c10d::OpType::RECV, tensors, tensors};
  call.run = [group = group_, tensor, way](const CommunicationOptions& how) {
    PointToPoint& messages = messages_of(*group);
    const Row row = way.sends ? Row::filled({tensor}, Use::kMoved) : Row::blank({tensor}, Use::kMoved);
    if (way.sends) return messages.send(row.tensor(), way.other, way.tag, how);
    messages.recv(row.tensor(), way.other, way.tag, how);
    row.give_back();
  };
  return start(std::move(call), *queue, ++messages_);
}

OnesumBackend::WorkPtr OnesumBackend::send(Tensors& tensors, int to, int tag) {
  return start_message(tensors, {to, tag, true});
}

OnesumBackend::WorkPtr OnesumBackend::recv(Tensors& tensors, int from, int tag) {
  return start_message(tensors, {from, tag, false});
}

OnesumBackend::WorkPtr OnesumBackend::barrier(const c10d::BarrierOptions& options) {
  Call call{"barrier", c10d::OpType::BARRIER, {}, {}, options.timeout, options.asyncOp};
  call.run = [group = group_](const CommunicationOptions& how) { group->cluster->barrier(how.timeout); };
  return start(std::move(call));
}

void OnesumBackend::monitoredBarrier(const c10d::BarrierOptions& options, bool /*wait_all_ranks*/) {
  c10d::BarrierOptions waited = options;
  waited.asyncOp = false;
  barrier(waited)->wait();
}

}  // namespace onesum::bridge
