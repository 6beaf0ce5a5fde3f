// What a user of the installed package writes: sums two replicas and reads the result; and catches an
// error, which shows that the exception type has one identity on both sides of the library's border.
#include <cstdio>
#include <vector>

#include <onesum/onesum.h>

int main() {
  const onesum::PerReplica value(std::vector<onesum::Tensor>{
      onesum::Tensor::from({1.0F, 2.0F, 3.0F}, {3}, "CPU:0"),
      onesum::Tensor::from({10.0F, 20.0F, 30.0F}, {3}, "CPU:1"),
  });
  onesum::ReductionToOneDevice ops;
  const onesum::Mirrored sum = ops.reduce(onesum::ReduceOp::kSum, value, value);
  for (std::size_t replica = 0; replica < sum.size(); ++replica) {
    const auto elements = sum.tensor(replica).data<float>();
    std::printf("onesum %s: %g %g %g\n", ONESUM_VERSION, elements[0], elements[1], elements[2]);
    if (elements[0] != 11 || elements[1] != 22 || elements[2] != 33) return 1;
  }
  try {
    onesum::Device::parse("no device");
  } catch (const onesum::Error& error) {
    std::printf("%s\n", error.what());
    return sum.size() == 2 ? 0 : 1;
  }
  return 1;
}
