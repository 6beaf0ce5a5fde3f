// Where a tensor's memory lives: "/job:worker/replica:0/task:1/device:GPU:0".
//
// A Device may be partial: "GPU:0" says nothing of job and task. Calls complete partial devices with the
// defaults of the cluster they run on, so "CPU:0" is always the caller's own. Grammar and rules:
// docs/semantics.md, section 1.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <onesum/export.h>

namespace onesum {

class ONESUM_API Device {
 public:
  Device() = default;  // nothing set
  // Parses; throws invalid_argument naming the text and the part that cannot be read.
  Device(std::string_view text);  // NOLINT(google-explicit-constructor): device strings are devices
  Device(const std::string& text) : Device(std::string_view(text)) {}  // NOLINT
  Device(const char* text) : Device(std::string_view(text)) {}         // NOLINT
  static Device parse(std::string_view text) { return Device(text); }

  const std::optional<std::string>& job() const noexcept { return job_; }
  std::optional<int> replica() const noexcept { return replica_; }
  std::optional<int> task() const noexcept { return task_; }
  const std::optional<std::string>& type() const noexcept { return type_; }  // upper case: "CPU", "GPU"
  std::optional<int> index() const noexcept { return index_; }

  bool is_empty() const noexcept;
  bool is_complete() const noexcept;  // all five fields set

  // This device with what it leaves unset taken from `defaults`, field by field.
  Device merged_over(const Device& defaults) const;
  // Complete: merged over `defaults`, then over /job:localhost/replica:0/task:0/device:CPU:0.
  Device canonical(const Device& defaults) const;
  Device canonical() const { return canonical(Device()); }
  // The CPU that this device hangs on: same job, replica and task, CPU:0.
  Device host() const;

  // Canonical order of parts; unset ones are left out; a type without index prints '*'. Parses back to
  // itself.
  std::string to_string() const;

  std::uint64_t hash() const noexcept { return hash_; }  // equal devices have equal hashes
  friend ONESUM_API bool operator==(const Device& a, const Device& b) noexcept;

 private:
  void rehash() noexcept;

  std::optional<std::string> job_;
  std::optional<int> replica_;
  std::optional<int> task_;
  std::optional<std::string> type_;
  std::optional<int> index_;
  std::uint64_t hash_ = 0;
};

}  // namespace onesum
