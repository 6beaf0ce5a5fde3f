// What every device engine must do, as tests. An engine's own test instantiates them:
//
//   INSTANTIATE_TEST_SUITE_P(Host, DeviceConformance, ::testing::Values(EngineUnderTest{...}));
//
// Where the engine's memory cannot be read and written directly, upload and download say how.
#pragma once

#include <atomic>
#include <cstring>
#include <functional>
#include <memory>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <onesum/error.h>

#include "engine/device.h"
#include "engine/reference.h"

namespace onesum::engine::testing {

struct EngineUnderTest {
  std::string name;
  std::function<std::unique_ptr<ThreadedEngine>()> make;
  std::function<void(void* to, const void* from, std::size_t bytes)> upload = std::memcpy;
  std::function<void(void* to, const void* from, std::size_t bytes)> download = std::memcpy;
};
inline void PrintTo(const EngineUnderTest& engine, std::ostream* out) { *out << engine.name; }

class DeviceConformance : public ::testing::TestWithParam<EngineUnderTest> {
 protected:
  // Engine memory with a content, released at the end.
  class Block {
   public:
    Block(DeviceConformance& test, const Bytes& content) : test_(test), bytes_(content.size()) {
      memory_ = test_.engine_->allocate(bytes_);
      if (bytes_ != 0) GetParam().upload(memory_, content.data(), bytes_);
    }
    ~Block() { test_.engine_->release(memory_, bytes_); }
    Block(const Block&) = delete;
    Block& operator=(const Block&) = delete;
    std::byte* data() const { return static_cast<std::byte*>(memory_); }
    Bytes content() const {
      Bytes bytes(bytes_);
      if (bytes_ != 0) GetParam().download(bytes.data(), memory_, bytes_);
      return bytes;
    }

   private:
    DeviceConformance& test_;
    std::size_t bytes_;
    void* memory_;
  };

  // Runs a form on random sources and compares with the reference.
  void check(ReduceForm form, const std::vector<std::uint8_t>& merges, std::size_t count) {
    form.merges = merges;
    std::vector<Bytes> sources;
    std::vector<std::unique_ptr<Block>> source_blocks;
    std::vector<std::unique_ptr<Block>> destination_blocks;
    std::vector<const std::byte*> from;
    std::vector<std::byte*> to;
    for (std::size_t i = 0; i < merges.size(); ++i) {
      sources.push_back(random_elements(form.input, count, random_));
      source_blocks.push_back(std::make_unique<Block>(*this, sources.back()));
      from.push_back(source_blocks.back()->data());
    }
    for (std::size_t i = 0; i < form.destinations; ++i) {
      destination_blocks.push_back(std::make_unique<Block>(*this, Bytes(count * size_of(form.output))));
      to.push_back(destination_blocks.back()->data());
    }
    const KernelArgs args{&form, to.data(), from.data(), 0, count};
    run_alone(engine_->reduce_kernel(form), args);
    const Bytes expected = reference_reduce(form, sources, count);
    for (const auto& block : destination_blocks) {
      ASSERT_EQ(difference(form.output, block->content(), expected), "")
          << to_string(form.input) << "/" << to_string(form.accumulator) << "/" << to_string(form.output)
          << " divisor " << form.divisor << " sources " << merges.size() << " count " << count;
    }
    for (std::size_t i = 0; i < merges.size(); ++i) ASSERT_EQ(source_blocks[i]->content(), sources[i]);
  }

  void run_alone(Kernel kernel, const KernelArgs& args) {
    struct Call {
      Kernel kernel;
      const KernelArgs* args;
    } call{kernel, &args};
    engine_->run_segments(
        1,
        [](void* context, std::uint32_t) noexcept {
          const auto* c = static_cast<const Call*>(context);
          c->kernel(*c->args);
        },
        &call);
  }

  std::unique_ptr<ThreadedEngine> engine_ = GetParam().make();
  std::mt19937 random_{12345};
};

TEST_P(DeviceConformance, SaysWhatItIs) {
  EXPECT_FALSE(engine_->device_type().empty());
  EXPECT_FALSE(engine_->description().empty());
  EXPECT_GE(engine_->threads(), 1U);
  EXPECT_GE(engine_->segment_bytes(), 4096U);
  EXPECT_FALSE(engine_->prefers_streaming(0));
}

TEST_P(DeviceConformance, MemoryIsAlignedAndDistinct) {
  std::vector<std::pair<void*, std::size_t>> blocks;
  for (const std::size_t bytes : Sizes{0, 1, 63, 64, 65, 1000, 4096, 100000, 2 << 20, 5 << 20}) {
    for (int twice = 0; twice < 2; ++twice) {
      void* memory = engine_->allocate(bytes);
      ASSERT_NE(memory, nullptr);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory) % 64, 0U) << bytes;
      const Bytes fill(bytes, static_cast<std::byte>(blocks.size()));
      if (bytes != 0) GetParam().upload(memory, fill.data(), bytes);
      blocks.emplace_back(memory, bytes);
    }
  }
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    Bytes found(blocks[i].second);
    if (!found.empty()) GetParam().download(found.data(), blocks[i].first, found.size());
    EXPECT_EQ(found, Bytes(blocks[i].second, static_cast<std::byte>(i)));
    engine_->release(blocks[i].first, blocks[i].second);
  }
}

TEST_P(DeviceConformance, TooMuchMemoryIsAnErrorThatNamesTheBytes) {
  for (const std::size_t bytes : Sizes{std::size_t{1} << 60, ~std::size_t{0} - 5}) {
    try {
      engine_->allocate(bytes);
      FAIL() << "an exbibyte was allocated";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kResourceExhausted);
      EXPECT_NE(std::string(error.what()).find(std::to_string(bytes)), std::string::npos) << error.what();
    }
  }
}

TEST_P(DeviceConformance, EveryFormGivesTheReferenceOrIsRefused) {
  for (const Element input : kAllElements) {
    for (const Element accumulator : kAllElements) {
      for (const Element output : kAllElements) {
        for (const std::int64_t divisor : {1, 3}) {
          for (const std::size_t sources : Sizes{1, 2, 6}) {
            const std::vector<std::uint8_t> merges = canonical_tree(sources);
            ReduceForm form{input, accumulator, output, divisor, merges, 2, false};
            if (testing::is_defined(form)) {
              check(form, merges, 37);
            } else {
              EXPECT_THROW(engine_->reduce_kernel(form), Error);
            }
            if (HasFatalFailure()) return;
          }
        }
      }
    }
  }
}

TEST_P(DeviceConformance, EveryOperationGivesTheReferenceOrIsRefused) {
  for (int combine = 1; combine < kNumCombines; ++combine) {
    for (const Element input : kAllElements) {
      for (const Element accumulator : kAllElements) {
        for (const Element output : kAllElements) {
          for (const std::size_t sources : Sizes{1, 2, 6}) {
            const std::vector<std::uint8_t> merges = canonical_tree(sources);
            ReduceForm form{input, accumulator, output, 1, merges, 2, false, static_cast<Combine>(combine)};
            if (testing::is_defined(form)) {
              check(form, merges, 37);
            } else {
              EXPECT_THROW(engine_->reduce_kernel(form), Error);
            }
            if (HasFatalFailure()) return;
          }
        }
      }
    }
  }
}

TEST_P(DeviceConformance, SourcesDestinationsAndTreesOfAnyNumber) {
  for (std::size_t sources = 1; sources <= 17; ++sources) {
    for (const bool streaming : {false, true}) {
      ReduceForm form;
      form.divisor = streaming ? static_cast<std::int64_t>(sources) : 1;
      form.destinations = 1 + sources % 5;
      form.streaming = streaming;
      check(form, canonical_tree(sources), 1031);
      check(form, random_tree(sources, random_), 1031);
      if (HasFatalFailure()) return;
    }
  }
}

TEST_P(DeviceConformance, MeaninglessFormsAreRefused) {
  const std::vector<std::uint8_t> pair = {0, 1};
  const auto refused = [&](ReduceForm form) {
    try {
      engine_->reduce_kernel(form);
    } catch (const Error& error) {
      return error.code() == ErrorCode::kInvalidArgument;
    }
    return false;
  };
  ReduceForm good;
  good.merges = pair;
  EXPECT_FALSE(refused(good));
  ReduceForm form = good;
  form.input = form.accumulator = form.output = Element::kBool;
  EXPECT_TRUE(refused(form)) << "a sum of bool";
  form = good;
  form.combine = Combine::kMax;
  EXPECT_FALSE(refused(form));
  form.divisor = 2;
  EXPECT_TRUE(refused(form)) << "half of a maximum";
  form = good;
  form.destinations = 0;
  EXPECT_TRUE(refused(form));
  form = good;
  form.divisor = 0;
  EXPECT_TRUE(refused(form));
  for (const std::vector<std::uint8_t>& merges :
       std::vector<std::vector<std::uint8_t>>{{}, {1}, {0, 0}, {0, 2}, {1, 0}}) {
    form = good;
    form.merges = merges;
    EXPECT_TRUE(refused(form));
  }
}

TEST_P(DeviceConformance, SegmentsRunOnceEach) {
  for (const std::uint32_t count : {0U, 1U, 2U, 3U, 100U, 10000U}) {
    std::vector<std::atomic<int>> runs(count);
    engine_->run_segments(
        count,
        [](void* context, std::uint32_t segment) noexcept {
          (*static_cast<std::vector<std::atomic<int>>*>(context))[segment].fetch_add(
              1, std::memory_order_relaxed);
        },
        &runs);
    for (const std::atomic<int>& run : runs) ASSERT_EQ(run.load(), 1);
  }
}

TEST_P(DeviceConformance, CallsFromSeveralThreadsAtOnce) {
  std::vector<std::thread> callers;
  std::atomic<int> wrong{0};
  for (int caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&] {
      for (int round = 0; round < 50; ++round) {
        std::vector<int> values(64, 0);  // plain: the call's end must make them visible
        engine_->run_segments(
            64,
            [](void* context, std::uint32_t segment) noexcept {
              (*static_cast<std::vector<int>*>(context))[segment] += static_cast<int>(segment) + 1;
            },
            &values);
        if (std::accumulate(values.begin(), values.end(), 0) != 64 * 65 / 2) ++wrong;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(wrong.load(), 0);
}

}  // namespace onesum::engine::testing
