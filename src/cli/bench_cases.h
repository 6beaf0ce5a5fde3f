// The library's calls that the bench measures.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cli/bench_sampler.h"
#include "cli/bench_workspace.h"

namespace onesum {
class CrossDeviceOps;
}

namespace onesum::cli {

// A way to reduce the tensors of a workspace.
class Case : public Subject {
 public:
  // Resets the workspace, makes one call and compares.
  virtual Difference difference(const Pattern& pattern) = 0;
};

enum class Place { kIn, kOut };         // in place, or into other memory of the caller
enum class Call { kPrepared, kPlain };  // prepared once, or batch_reduce_into each time

// The workspace and the operations must outlive what is returned.
std::unique_ptr<Case> into_case(CrossDeviceOps& ops, Workspace& workspace, Place place, Call call);

// batch_reduce: fresh results in every call, gone before the next one.
std::unique_ptr<Case> fresh_case(CrossDeviceOps& ops, Workspace& workspace);

}  // namespace onesum::cli
