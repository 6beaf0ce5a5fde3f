// A small network: 64 pixels, a hidden layer of rectified linear units, 10 classes with softmax.
//
// Its weights and their gradients are lists of four tensors: hidden weights [64, 64] and bias [64], output
// weights [64, 10] and bias [10].
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include <onesum/onesum.h>

#include "dataset.h"

namespace digits {

inline constexpr std::size_t kHidden = 128;

// What a classifier achieved on some examples.
struct Score {
  float loss = 0;  // summed
  float correct = 0;
};

// A list of weights (T = const float) or gradients (T = float), taken apart.
template <class T>
struct Layers {
  template <class Tensors>
  explicit Layers(Tensors& tensors)
      : hidden(tensors[0].template data<float>()),
        hidden_bias(tensors[1].template data<float>()),
        output(tensors[2].template data<float>()),
        output_bias(tensors[3].template data<float>()) {}
  std::span<T> hidden, hidden_bias, output, output_bias;
};

inline std::vector<onesum::Tensor> zero_layers(const onesum::Device& device) {
  const std::array<onesum::Shape, 4> shapes = {
      {{kPixels, kHidden}, {kHidden}, {kHidden, kClasses}, {kClasses}}};
  std::vector<onesum::Tensor> tensors;
  for (const onesum::Shape& shape : shapes) {
    tensors.push_back(onesum::Tensor::empty(onesum::DType::kFloat32, shape, device));
    std::ranges::fill(tensors.back().data<float>(), 0.0F);
  }
  return tensors;
}

// Biases are zero, weights uniform with variance 2 / inputs.
inline std::vector<onesum::Tensor> initial_weights(const onesum::Device& device, std::mt19937& random) {
  std::vector<onesum::Tensor> tensors = zero_layers(device);
  for (onesum::Tensor& tensor : tensors) {
    if (tensor.shape().rank() != 2) continue;
    const float limit = std::sqrt(6.0F / static_cast<float>(tensor.shape()[0]));
    for (float& weight : tensor.data<float>()) {
      weight = limit * (2 * static_cast<float>(random()) / static_cast<float>(std::mt19937::max()) - 1);
    }
  }
  return tensors;
}

// What the network computes for one example.
struct Activations {
  std::array<float, kHidden> hidden;
  std::array<float, kClasses> probabilities;

  Activations(const Layers<const float>& weights, const Example& example) {
    std::ranges::copy(weights.hidden_bias, hidden.begin());
    for (std::size_t i = 0; i < kPixels; ++i) {
      for (std::size_t j = 0; j < kHidden; ++j)
        hidden[j] += example.pixels[i] * weights.hidden[i * kHidden + j];
    }
    for (float& unit : hidden) unit = std::max(unit, 0.0F);

    std::ranges::copy(weights.output_bias, probabilities.begin());
    for (std::size_t j = 0; j < kHidden; ++j) {
      for (std::size_t k = 0; k < kClasses; ++k)
        probabilities[k] += hidden[j] * weights.output[j * kClasses + k];
    }
    const float largest = *std::ranges::max_element(probabilities);
    float sum = 0;
    for (float& p : probabilities) sum += p = std::exp(p - largest);
    for (float& p : probabilities) p /= sum;
  }

  Score score(std::size_t label) const {
    const auto guess = std::ranges::max_element(probabilities) - probabilities.begin();
    return {.loss = -std::log(std::max(probabilities[label], 1e-30F)),
            .correct = static_cast<std::size_t>(guess) == label ? 1.0F : 0.0F};
  }
};

inline Score evaluate(const Layers<const float>& weights, std::span<const Example> examples) {
  Score total;
  for (const Example& example : examples) {
    const Score score = Activations(weights, example).score(example.label);
    total.loss += score.loss;
    total.correct += score.correct;
  }
  return total;
}

// Adds the gradients of `scale` times the summed loss of the examples.
inline Score add_gradients(const Layers<const float>& weights, std::span<const Example> examples, float scale,
                           const Layers<float>& gradients) {
  Score total;
  for (const Example& example : examples) {
    const Activations found(weights, example);
    const Score score = found.score(example.label);
    total.loss += score.loss;
    total.correct += score.correct;

    std::array<float, kClasses> by_output = found.probabilities;
    by_output[example.label] -= 1;
    for (std::size_t k = 0; k < kClasses; ++k) gradients.output_bias[k] += by_output[k] *= scale;

    std::array<float, kHidden> by_hidden{};
    for (std::size_t j = 0; j < kHidden; ++j) {
      if (found.hidden[j] == 0) continue;
      for (std::size_t k = 0; k < kClasses; ++k) {
        gradients.output[j * kClasses + k] += found.hidden[j] * by_output[k];
        by_hidden[j] += weights.output[j * kClasses + k] * by_output[k];
      }
    }
    for (std::size_t j = 0; j < kHidden; ++j) gradients.hidden_bias[j] += by_hidden[j];
    for (std::size_t i = 0; i < kPixels; ++i) {
      for (std::size_t j = 0; j < kHidden; ++j)
        gradients.hidden[i * kHidden + j] += example.pixels[i] * by_hidden[j];
    }
  }
  return total;
}

}  // namespace digits
