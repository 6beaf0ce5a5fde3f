// Trains a classifier of handwritten digits, data-parallel on several CPU devices of one or more workers.
//
// The weights are variables mirrored on all devices. In every step each replica computes the gradients of its
// share of the batch, one batch_reduce sums them over all replicas of all workers, and each replica applies
// the same sums to its own copy of the weights, so that the copies stay equal to the last bit. Alone it is
// one worker; `onesum run`, or any other launcher, makes it several.
#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <functional>
#include <memory>
#include <numbers>
#include <optional>
#include <random>
#include <span>
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

// The workers of the cluster, as their launcher names them.
std::vector<std::string> worker_names(const Cluster& cluster) {
  std::vector<std::string> names;
  for (const Device& worker : cluster.workers()) names.push_back(worker.to_string());
  return names;
}

std::unique_ptr<CrossDeviceOps> ops_of(const Cluster& cluster, int devices) {
  return std::make_unique<MultiWorkerAllReduce>(worker_names(cluster), devices, AllReduceSpecs("auto"), 0, 0,
                                                10, cluster);
}

std::uint64_t digest_of(std::span<const Tensor> tensors) {
  std::uint64_t digest = 0;
  for (const Tensor& tensor : tensors) {
    for (const float value : tensor.data<float>()) {
      digest = (digest ^ std::bit_cast<std::uint32_t>(value)) * 0x9e3779b97f4a7c15U;
    }
  }
  return digest;
}

Tensor as_tensor(const Score& score, const Device& device) {
  return Tensor::from<float>({score.loss, score.correct}, {2}, device);
}

class Trainer {
 public:
  Trainer(const Cluster& cluster, int devices)
      : cluster_(cluster), strategy_(cpu_devices(devices), ops_of(cluster, devices)) {
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

  // The digest of the weights, if all replicas of all workers have the same.
  std::optional<std::uint64_t> common_digest() {
    const PerReplica own = strategy_.run([&](ReplicaContext& replica) {
      const auto digest = static_cast<std::int64_t>(digest_of(own_copies(weights_)));
      return Tensor::from<std::int64_t>({digest}, {1}, replica.device());
    });
    const Mirrored all = strategy_.cross_device_ops().gather(own, own, 0);
    const std::span<const std::int64_t> digests = all.tensor().data<std::int64_t>();
    if (std::ranges::adjacent_find(digests, std::not_equal_to{}) != digests.end()) return std::nullopt;
    return static_cast<std::uint64_t>(digests.front());
  }

  const Reductions& reductions() const { return reductions_; }

 private:
  // The examples that a replica works on, of all replicas of all workers: shares differ by one at most.
  std::span<const Example> share_of(std::span<const Example> examples, const ReplicaContext& replica) const {
    const auto of_worker = static_cast<std::size_t>(replica.num_replicas());
    const std::size_t replicas = static_cast<std::size_t>(cluster_.size()) * of_worker;
    const std::size_t id = static_cast<std::size_t>(cluster_.rank()) * of_worker +
                           static_cast<std::size_t>(replica.replica_id());
    const std::size_t first = examples.size() * id / replicas;
    return examples.subspan(first, examples.size() * (id + 1) / replicas - first);
  }

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

  const Cluster cluster_;
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
double train(Trainer& trainer, const digits::Dataset& data, int epochs, bool shows_progress) {
  const digits::Progress progress(epochs, shows_progress);
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

void report(const Trainer& trainer, double accuracy, Seconds time) {
  const Reductions& reduced = trainer.reductions();
  std::printf("held-out accuracy: %.1f %%\n", 100 * accuracy);
  std::printf(
      "gradients reduced: %zu calls of batch_reduce, %zu tensors, %.1f MiB per replica, algorithm %s, "
      "%.3f s of %.2f s (%.1f %%)\n",
      reduced.calls, reduced.tensors, static_cast<double>(reduced.bytes) / (1 << 20),
      reduced.algorithm.c_str(), reduced.time.count(), time.count(), 100 * reduced.time / time);
}

int run(const digits::Options& options) {
  const digits::Dataset data = digits::read_dataset(options.data);
  const Cluster cluster = Cluster::from_environment();
  const bool speaks = cluster.rank() == 0;  // one of the workers for all
  if (speaks) {
    std::printf("training on %zu digits with %d worker(s) x %d device(s); %zu held out (every fifth)\n",
                data.training.size(), cluster.size(), options.devices, data.held_out.size());
  }
  const auto start = std::chrono::steady_clock::now();
  Trainer trainer(cluster, options.devices);
  const double accuracy = train(trainer, data, options.epochs, speaks);
  const Seconds time = std::chrono::steady_clock::now() - start;
  const std::optional<std::uint64_t> weights = trainer.common_digest();
  if (speaks) report(trainer, accuracy, time);
  if (!weights) {
    std::fprintf(stderr, "train_digits: the weights of the replicas differ\n");
    return 1;
  }
  if (speaks) {
    std::printf("weights of all %d replicas: %016llx\n", cluster.size() * options.devices,
                static_cast<unsigned long long>(*weights));
  }
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
