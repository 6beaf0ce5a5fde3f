#include "api/worker_devices.h"

#include <algorithm>

#include <fmt/format.h>

#include <onesum/error.h>

#include "base/text.h"

namespace onesum::api {
namespace {

template <class... Args>
[[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) {
  throw Error(ErrorCode::kInvalidArgument, fmt::format(format, std::forward<Args>(args)...));
}

Device parse_worker(const std::string& text, const std::string& what) {
  const Device worker(text);
  if (worker.is_empty()) refuse("{} is empty; expected a worker such as /job:worker/task:0", what);
  if (worker.type()) {
    refuse("{} ({}) names the device {}:{}; expected a worker, of job, replica and task only", what,
           quoted(text), *worker.type(), worker.index() ? std::to_string(*worker.index()) : "*");
  }
  return worker_of(worker);
}

}  // namespace

Device worker_of(const Device& device) {
  const Device complete = device.canonical();
  return fmt::format("/job:{}/replica:{}/task:{}", *complete.job(), *complete.replica(), *complete.task());
}

std::vector<Device> parse_workers(std::span<const std::string> texts, const std::string& who) {
  if (texts.empty()) refuse("{}: worker_devices is empty; expected at least one worker", who);
  std::vector<Device> workers;
  for (const std::string& text : texts) {
    const std::string what = fmt::format("{}: worker_devices[{}]", who, workers.size());
    const Device worker = parse_worker(text, what);
    const auto same = std::ranges::find(workers, worker) - workers.begin();
    if (same < std::ssize(workers)) {
      refuse("{} ({}) and worker_devices[{}] ({}) are both {}", what, quoted(text), same, quoted(texts[same]),
             worker.to_string());
    }
    workers.push_back(worker);
  }
  return workers;
}

}  // namespace onesum::api
