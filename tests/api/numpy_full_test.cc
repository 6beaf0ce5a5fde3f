// Sums and means compared with something this project did not write: NumPy, bit by bit.
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
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

TEST(NumPy, GivesTheSameBits) {
  const std::string python = python_with_numpy();
  ASSERT_FALSE(python.empty())
      << "neither /usr/bin/python3 nor python3 can import numpy: install python3-numpy (tools/setup does)";
  const Folder folder;
  {
    std::ofstream cases(folder.path() / "cases");
    std::ofstream inputs(folder.path() / "inputs", std::ios::binary);
    std::ofstream results(folder.path() / "results", std::ios::binary);
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
              cases << to_string(dtype) << (op == ReduceOp::kSum ? " sum " : " mean ") << n << ' ' << elements
                    << '\n';
              for (std::size_t r = 0; r < n; ++r) append(inputs, value.tensor(r));
            }
          }
        }
      }
      for (const Mirrored& result : ops.batch_reduce(op, pairs))
        append(results, result.tensor(result.size() - 1));
    }
  }
  const Output output =
      run(python + " " ONESUM_SOURCE_DIR "/tests/api/numpy_reference.py " + folder.path().string());
  EXPECT_EQ(output.status, 0) << output.text;
  EXPECT_EQ(output.text, "2128 cases equal\n");
}

}  // namespace
}  // namespace onesum
