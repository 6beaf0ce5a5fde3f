// Sums and means compared with something this project did not write: NumPy, bit by bit.
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include "support/bits.h"
#include "support/tensors.h"

namespace onesum {
namespace {

namespace fs = std::filesystem;
using testing::Fill;

struct Output {
  int status = -1;
  std::string text;
};

Output run(const std::string& command) {
  Output output;
  FILE* const pipe = popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return output;
  std::array<char, 4096> buffer{};
  while (std::fgets(buffer.data(), buffer.size(), pipe) != nullptr) output.text += buffer.data();
  output.status = pclose(pipe);
  return output;
}

// Debian's own interpreter first: python3-numpy belongs to it. Empty: none has NumPy.
std::string python_with_numpy() {
  for (const char* python : {"/usr/bin/python3", "python3"}) {
    if (run(std::string(python) + " -c 'import numpy'").status == 0) return python;
  }
  return "";
}

class Folder {
 public:
  Folder() : path_(fs::temp_directory_path() / ("onesum_numpy_" + std::to_string(getpid()))) {
    fs::create_directories(path_);
  }
  ~Folder() { fs::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

void append(std::ofstream& file, const Tensor& tensor) {
  file.write(static_cast<const char*>(tensor.memory()), static_cast<std::streamsize>(tensor.bytes()));
}

// What NumPy is asked about: see numpy_reference.py.
struct Questions {
  explicit Questions(const fs::path& folder)
      : cases(folder / "cases"),
        inputs(folder / "inputs", std::ios::binary),
        results(folder / "results", std::ios::binary) {}
  std::ofstream cases;
  std::ofstream inputs;
  std::ofstream results;
};

// Python's answer to what `ask` wrote.
template <class Ask>
Output answer(const Ask& ask) {
  const std::string python = python_with_numpy();
  if (python.empty()) {
    return {
        -1,
        "neither /usr/bin/python3 nor python3 can import numpy: install python3-numpy (tools/setup does)"};
  }
  const Folder folder;
  {
    Questions questions(folder.path());
    ask(questions);
  }
  return run(python + " tests/api/numpy_reference.py " + folder.path().string());
}

const char* name_of(ReduceOp op) { return op == ReduceOp::kSum ? "sum" : "mean"; }

TEST(NumPy, GivesTheSameBits) {
  const Output output = answer([](Questions& questions) {
    ReductionToOneDevice ops;
    for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kMean}) {
      std::vector<ValueDestination> pairs;
      for (const DType dtype : testing::kSummable) {
        for (const std::size_t n : {1U, 2U, 3U, 4U, 5U, 6U, 7U, 8U, 13U, 17U, 33U}) {
          for (const std::int64_t elements : {1, 7, 1000, 40001}) {
            if (elements > 1000 && n > 5) continue;
            for (const Fill how : {Fill::kPlain, Fill::kWild}) {
              const PerReplica value =
                  testing::random_value(dtype, Shape{elements}, testing::cpus(n), pairs.size(), how);
              pairs.push_back({value, value});
              questions.cases << to_string(dtype) << ' ' << name_of(op) << ' ' << n << ' ' << elements
                              << '\n';
              for (std::size_t r = 0; r < n; ++r) append(questions.inputs, value.tensor(r));
            }
          }
        }
      }
      for (const Mirrored& result : ops.batch_reduce(op, pairs))
        append(questions.results, result.tensor(result.size() - 1));
    }
  });
  EXPECT_EQ(output.status, 0) << output.text;
  EXPECT_EQ(output.text, "2128 cases equal\n");
}

// Rule 4.7. Replica r has from none to 20 rows.
PerReplica random_slices(DType dtype, std::size_t n, std::int64_t elements, std::int64_t different,
                         Fill how) {
  std::mt19937_64 random(n + static_cast<std::size_t>(different));
  std::vector<Value> replicas;
  for (std::size_t r = 0; r < n; ++r) {
    const auto rows = static_cast<std::int64_t>(r == 1 ? 0 : 1 + random() % 20);
    const std::string device = testing::cpus(r + 1).back();
    Tensor indices = Tensor::empty(DType::kInt64, {rows}, device);
    for (std::int64_t& index : indices.data<std::int64_t>()) {
      index = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(different)) << 30;
    }
    replicas.emplace_back(IndexedSlices{
        testing::random_tensor(dtype, {rows, elements}, device, random(), how), indices, std::nullopt});
  }
  return PerReplica(std::move(replicas));
}

TEST(NumPy, GivesTheSameBitsOfMergedRows) {
  const Output output = answer([](Questions& questions) {
    ReductionToOneDevice ops;
    CommunicationOptions options;
    options.sparse_rows = SparseRows::kMergeDuplicates;
    for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kMean}) {
      for (const DType dtype : testing::kSummable) {
        for (const std::size_t n : {1U, 2U, 3U, 5U, 6U, 7U, 16U}) {
          for (const std::int64_t elements : {1, 33}) {
            for (const std::int64_t different : {3, 50}) {
              for (const Fill how : {Fill::kPlain, Fill::kWild}) {
                const PerReplica value = random_slices(dtype, n, elements, different, how);
                questions.cases << to_string(dtype) << ' ' << name_of(op) << ' ' << n << ' ' << elements;
                for (std::size_t r = 0; r < n; ++r) {
                  questions.cases << ' ' << value.slices(r).indices.shape().elements();
                  append(questions.inputs, value.slices(r).indices);
                  append(questions.inputs, value.slices(r).values);
                }
                questions.cases << '\n';
                const Mirrored result = ops.reduce(op, value, value, options);
                append(questions.results, result.slices(n - 1).indices);
                append(questions.results, result.slices(n - 1).values);
              }
            }
          }
        }
      }
    }
  });
  EXPECT_EQ(output.status, 0) << output.text;
  EXPECT_EQ(output.text, "1568 cases equal\n");
}

}  // namespace
}  // namespace onesum
