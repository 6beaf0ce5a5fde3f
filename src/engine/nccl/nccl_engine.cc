#include "engine/nccl/nccl_engine.h"

#include <cstring>
#include <utility>
#include <vector>

#include <onesum/error.h>

#include "engine/nccl/nccl_communicator.h"
#include "engine/nccl/nccl_elements.h"

namespace onesum::engine::nccl {
namespace {

static_assert(sizeof(NativeEngine::Id) == sizeof(ncclUniqueId));

class NcclEngine final : public NativeEngine {
 public:
  explicit NcclEngine(std::function<cuda::CudaEngine&(int)> device)
      : device_(std::move(device)), library_(open_library()) {}

  Id make_id() override {
    ncclUniqueId made;
    const ncclResult_t result = library_->get_unique_id(&made);
    if (result != ncclSuccess) {
      throw Error(ErrorCode::kUnavailable,
                  library_->name() + ": making the id of a group: " + library_->words(result, nullptr));
    }
    Id id;
    std::memcpy(id.data(), &made, id.size());
    return id;
  }

  std::unique_ptr<Communicator> join(const Id& id, int size, std::span<const Member> members) override {
    std::vector<NcclCommunicator::Local> locals;
    for (const Member& member : members) locals.push_back({&device_(member.device), member.rank});
    auto communicator = std::make_unique<NcclCommunicator>(library_, turn_, size, std::move(locals));
    communicator->start(id);
    return communicator;
  }

  bool can_sum(Element element) const noexcept override { return sum_type(element).has_value(); }

  std::string description() const override { return library_->name(); }
  std::string file() const override { return library_->file; }

 private:
  std::function<cuda::CudaEngine&(int)> device_;
  std::shared_ptr<const Library> library_;
  std::shared_ptr<LaunchTurn> turn_ = std::make_shared<LaunchTurn>();
};

}  // namespace

std::unique_ptr<NativeEngine> make_nccl_engine(std::function<cuda::CudaEngine&(int index)> device) {
  return std::make_unique<NcclEngine>(std::move(device));
}

}  // namespace onesum::engine::nccl
