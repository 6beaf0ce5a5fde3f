// Trains a classifier of handwritten digits, data-parallel on several CPU devices of this process.
//
// The weights are variables mirrored on all devices. In every step each replica computes the gradients of its
// share of the batch, one batch_reduce sums them over all replicas, and each replica applies the same sums to
// its own copy of the weights, so that the copies stay equal to the last bit.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <exception>
#include <numbers>
#include <random>
#include <string>
#include <vector>

#include <onesum/onesum.h>

#include "digits/classifier.h"
#include "digits/dataset.h"
#include "digits/options.h"
#include "digits/progress.h"

namespace {

using namespace onesum;
using digits::Example;
using digits::Layers;
using digits::Score;
using Seconds = std::chrono::duration<double>;

constexpr std::size_t kBatch = 64;
constexpr float kLearningRate = 0.1F;
constexpr float kMomentum = 0.9F;
constexpr float kWeightDecay = 2e-4F;
constexpr double kRequiredAccuracy = 0.95;

// What all calls of batch_reduce did together.
struct Reductions {
  std::size_t calls = 0, tensors = 0, bytes = 0;
  std::string algorithm;
  Seconds time{0};

  void add(const CallReport& call) {
    ++calls;
    tensors += call.tensors;
    bytes += call.bytes;
    algorithm = call.algorithm;
    time += call.time;
  }
};

std::vector<std::string> cpu_devices(int count) {
  std::vector<std::string> names;
  for (int i = 0; i < count; ++i) names.push_back("CPU:" + std::to_string(i));
  return names;
}

// The examples of a batch that a replica works on: shares differ by one at most.
std::span<const Example> share_of(std::span<const Example> batch, const ReplicaContext& replica) {
  const auto bound = [&](int id) {
    return batch.size() * static_cast<std::size_t>(id) / replica.num_replicas();
  };
  const std::size_t first = bound(replica.replica_id());
  return batch.subspan(first, bound(replica.replica_id() + 1) - first);
}

Tensor as_tensor(const Score& score, const Device& device) {
  return Tensor::from<float>({score.loss, score.correct}, {2}, device);
}

class Trainer {
 public:
  explicit Trainer(int devices) : strategy_(cpu_devices(devices), std::make_unique<ReductionToOneDevice>()) {
    const auto scope = strategy_.scope();  // variables made from here on are mirrored on all devices
    std::mt19937 random(1);
    for (const Tensor& initial : digits::initial_weights("CPU:0", random)) {
      weights_.emplace_back("weights", initial);
    }
    for (const Tensor& zeros : digits::zero_layers("CPU:0")) velocities_.emplace_back("velocities", zeros);
  }

  // One step of gradient descent; the score is that of the weights before it.
  Score train(std::span<const Example> batch, float learning_rate) {
    return total(strategy_.run([&](ReplicaContext& replica) {
      std::vector<Tensor> weights = own_copies(weights_);
      std::vector<Tensor> gradients = digits::zero_layers(replica.device());
      // The loss is divided by the whole batch: the sum over replicas is its mean, even if shares differ.
      const float scale = 1.0F / static_cast<float>(batch.size());
      const Score score = digits::add_gradients(Layers<const float>(weights), share_of(batch, replica), scale,
                                                Layers<float>(gradients));

      const std::vector<Value> sums = replica.merge_call(
          [&](MirroredStrategy&, std::span<const PerReplica> values) { return sum_over_replicas(values); },
          gradients);

      std::vector<Tensor> velocities = own_copies(velocities_);
      for (std::size_t i = 0; i < weights.size(); ++i) {
        descend(weights[i], velocities[i], std::get<Tensor>(sums[i]), learning_rate);
      }
      return as_tensor(score, replica.device());
    }));
  }

  Score evaluate(std::span<const Example> examples) {
    return total(strategy_.run([&](ReplicaContext& replica) {
      const std::vector<Tensor> weights = own_copies(weights_);
      const Score score = digits::evaluate(Layers<const float>(weights), share_of(examples, replica));
      return as_tensor(score, replica.device());
    }));
  }

  const Reductions& reductions() const { return reductions_; }

 private:
  // Every gradient, summed over the replicas and copied back to where its parts came from.
  std::vector<Mirrored> sum_over_replicas(std::span<const PerReplica> gradients) {
    std::vector<ValueDestination> pairs;
    for (const PerReplica& gradient : gradients) pairs.push_back({gradient, gradient});
    std::vector<Mirrored> sums = strategy_.extended().batch_reduce_to(ReduceOp::kSum, pairs);
    reductions_.add(strategy_.cross_device_ops().last_call());
    return sums;
  }

  // The calling replica's components; a Tensor is a handle, so writing to it writes the variable.
  static std::vector<Tensor> own_copies(std::span<const Variable> variables) {
    std::vector<Tensor> tensors;
    for (const Variable& variable : variables) tensors.push_back(variable.value());
    return tensors;
  }

  static void descend(Tensor& weights, Tensor& velocities, const Tensor& gradients, float learning_rate) {
    const std::span<float> weight = weights.data<float>();
    const std::span<float> velocity = velocities.data<float>();
    const std::span<const float> gradient = gradients.data<float>();
    for (std::size_t i = 0; i < weight.size(); ++i) {
      velocity[i] = kMomentum * velocity[i] - learning_rate * (gradient[i] + kWeightDecay * weight[i]);
      weight[i] += velocity[i];
    }
  }

  Score total(const PerReplica& scores) {
    const Mirrored sum = strategy_.reduce(ReduceOp::kSum, scores);
    const std::span<const float> values = sum.tensor().data<float>();
    return {.loss = values[0], .correct = values[1]};
  }

  MirroredStrategy strategy_;
  std::vector<Variable> weights_;
  std::vector<Variable> velocities_;
  Reductions reductions_;
};

float mean_of(float sum, std::size_t count) { return sum / static_cast<float>(count); }

// Falls from its full value to nearly nothing, along a cosine.
float learning_rate_of(int epoch, int epochs) {
  const float share = static_cast<float>(epoch - 1) / static_cast<float>(epochs);
  return kLearningRate / 2 * (1 + std::cos(std::numbers::pi_v<float> * share));
}

// Trains and returns the accuracy on the held-out digits.
double train(Trainer& trainer, const digits::Dataset& data, int epochs) {
  const digits::Progress progress(epochs);
  std::mt19937 random(2);
  std::vector<Example> examples(data.training.size());
  double accuracy = 0;
  for (int epoch = 1; epoch <= epochs; ++epoch) {
    std::ranges::transform(data.training, examples.begin(),
                           [&](const Example& example) { return digits::jittered(example, random); });
    std::ranges::shuffle(examples, random);
    float loss = 0;
    for (std::size_t first = 0; first < examples.size(); first += kBatch) {
      progress.step(epoch, mean_of(static_cast<float>(first), examples.size()));
      const auto batch = std::span(examples).subspan(first, std::min(kBatch, examples.size() - first));
      loss += trainer.train(batch, learning_rate_of(epoch, epochs)).loss;
    }
    accuracy = mean_of(trainer.evaluate(data.held_out).correct, data.held_out.size());
    progress.epoch(epoch, mean_of(loss, examples.size()), accuracy);
  }
  progress.end();
  return accuracy;
}

int run(const digits::Options& options) {
  const digits::Dataset data = digits::read_dataset(options.data);
  std::printf("training on %zu digits with %d devices; %zu held out (every fifth)\n", data.training.size(),
              options.devices, data.held_out.size());
  const auto start = std::chrono::steady_clock::now();
  Trainer trainer(options.devices);
  const double accuracy = train(trainer, data, options.epochs);
  const Seconds time = std::chrono::steady_clock::now() - start;

  const Reductions& reduced = trainer.reductions();
  std::printf("held-out accuracy: %.1f %%\n", 100 * accuracy);
  std::printf(
      "gradients reduced: %zu calls of batch_reduce, %zu tensors, %.1f MiB per replica, algorithm %s, "
      "%.3f s of %.2f s (%.1f %%)\n",
      reduced.calls, reduced.tensors, static_cast<double>(reduced.bytes) / (1 << 20),
      reduced.algorithm.c_str(), reduced.time.count(), time.count(), 100 * reduced.time / time);
  if (accuracy >= kRequiredAccuracy) return 0;
  std::fprintf(stderr, "train_digits: less than %.0f %% of the held-out digits were recognised\n",
               100 * kRequiredAccuracy);
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const digits::Options options = digits::parse_options({argv + 1, argv + argc});
    if (!options.wants_help) return run(options);
    std::printf("%s", digits::kUsage.data());
    return 0;
  } catch (const digits::UsageError& error) {
    std::fprintf(stderr, "train_digits: %s; see train_digits --help\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "train_digits: %s\n", error.what());
    return 1;
  }
}
