// Processes that this program starts from itself: members of groups of NCCL, and such as look for the
// library.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "engine/native.h"

namespace onesum::testing {

inline constexpr std::string_view kNcclPeer = "--nccl-peer";

// What main does with the arguments after kNcclPeer.
int run_nccl_peer(const std::vector<std::string_view>& arguments);

class NcclPeer {
 public:
  using Environment = std::map<std::string, std::string>;

  // Says which library there is, or what stands in the way.
  static NcclPeer looking(const Environment& more);
  // The same, and the dynamic linker does not look where the system's libraries are listed.
  static NcclPeer looking_without_list(const Environment& more);
  // Aborts a group of its own and lets another go, on GPU:0 and GPU:1. Says "left" at the end.
  static NcclPeer leaving(const Environment& more);

  // Joins and runs some cases with who else is there, says what was wrong, and ends.
  static NcclPeer working(const engine::NativeEngine::Id& id, int size,
                          std::span<const engine::NativeEngine::Member> members);
  // Joins, and does nothing but wait for the signal that ends or stops it.
  static NcclPeer idle(const engine::NativeEngine::Id& id, int size,
                       std::span<const engine::NativeEngine::Member> members);

  ~NcclPeer();  // kills it
  NcclPeer(NcclPeer&& other) noexcept;
  NcclPeer(const NcclPeer&) = delete;
  NcclPeer& operator=(const NcclPeer&) = delete;
  NcclPeer& operator=(NcclPeer&&) = delete;

  void signal(int number) const;
  // What it has said to the end.
  std::string wait();

 private:
  NcclPeer(std::vector<std::string> command, const Environment& more);

  pid_t process_ = -1;
  int output_ = -1;
};

}  // namespace onesum::testing
