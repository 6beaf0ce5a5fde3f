// The example of the README.
#include <cstdio>

#include <onesum/onesum.h>

int main() {
  using namespace onesum;
  MirroredStrategy strategy({"CPU:0", "CPU:1"}, std::make_unique<ReductionToOneDevice>());
  strategy.run([](ReplicaContext& replica) {
    const float id = static_cast<float>(replica.replica_id());
    const Tensor gradient = Tensor::from<float>({id, 10 * id}, {2}, replica.device());
    const Tensor mean = replica.all_reduce(ReduceOp::kMean, gradient);
    std::printf("replica %d: [%g, %g]\n", replica.replica_id(), mean.data<float>()[0], mean.data<float>()[1]);
  });
}
