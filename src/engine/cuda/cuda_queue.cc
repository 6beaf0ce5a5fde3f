#include "engine/cuda/cuda_queue.h"

#include "engine/cuda/cuda_error.h"
#include "engine/cuda/kernel_forms.h"
#include "engine/cuda/launch.h"

namespace onesum::engine::cuda {
namespace {

// Copies of a few large pieces are left to the copy engines; a kernel takes many small ones at once.
constexpr std::size_t kMostCopies = 4;

CudaMark& ours(Mark& mark) { return static_cast<CudaMark&>(mark); }

}  // namespace

CudaMark::CudaMark(int device) : device_(device) {
  const OnDevice here(device);
  require(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), device, "making an event");
}

CudaMark::~CudaMark() { cudaEventDestroy(event_); }

bool CudaMark::is_reached() {
  const cudaError_t answer = cudaEventQuery(event_);
  if (answer == cudaErrorNotReady) return false;
  require(answer, device_, "waiting for what it was given");
  return true;
}

void CudaMark::record_on(cudaStream_t stream) {
  const OnDevice here(device_);
  require(cudaEventRecord(event_, stream), device_, "recording an event");
}

CudaQueue::CudaQueue(int device) : device_(device) {
  const OnDevice here(device);
  require(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), device, "making a stream");
  int count = 0;
  require(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device), device,
          "asking for its multiprocessors");
  multiprocessors_ = static_cast<unsigned>(count);
}

CudaQueue::~CudaQueue() { cudaStreamDestroy(stream_); }

void CudaQueue::reduce(const QueuedReduce& work) {
  const OnDevice here(device_);
  if (copy(work)) return;
  require(launch_reduce(find_kernel(*work.form), *work.form, work.is_wide, work.pieces,
                        {stream_, multiprocessors_}),
          device_, "launching a reduction");
}

bool CudaQueue::copy(const QueuedReduce& work) {
  if (!is_copy(*work.form) || work.form->destinations != 1 || work.pieces.size() > kMostCopies) return false;
  const std::size_t size = size_of(work.form->input);
  for (const QueuedPiece& piece : work.pieces) {
    require(cudaMemcpyAsync(piece.pointers[0] + piece.first * size, piece.pointers[1] + piece.first * size,
                            piece.count * size, cudaMemcpyDefault, stream_),
            device_, "copying");
  }
  return true;
}

void CudaQueue::copy_rows(const QueuedRows& work) {
  const OnDevice here(device_);
  require(cudaMemcpy2DAsync(work.destination, work.destination_stride, work.source, work.source_stride,
                            work.row_bytes, work.rows, cudaMemcpyDefault, stream_),
          device_, "copying rows");
}

void CudaQueue::record(Mark& mark) { ours(mark).record_on(stream_); }

void CudaQueue::wait_for(Mark& mark) {
  const OnDevice here(device_);
  require(cudaStreamWaitEvent(stream_, ours(mark).event(), 0), device_, "letting a stream wait");
}

}  // namespace onesum::engine::cuda
