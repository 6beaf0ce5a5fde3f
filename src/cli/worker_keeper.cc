#include "cli/worker_keeper.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/output_queue.h"
#include "cli/process_tree.h"
#include "cli/run_signals.h"
#include "cli/run_summary.h"

namespace onesum::cli {
namespace {

struct Worker {
  WorkerProcess process;
  WorkerLines out, err;
  WorkerEnding ending;
  bool is_running = true;
};

bool asks_to_end(int signal) {
  return signal == SIGINT || signal == SIGTERM || signal == SIGHUP || signal == SIGQUIT;
}

class Keeper {
 public:
  Keeper(KeepOptions options, Fd lifeline);
  ~Keeper();  // whatever happened, nothing is left
  Keeper(const Keeper&) = delete;
  Keeper& operator=(const Keeper&) = delete;

  int run();

 private:
  using Serve = void (Keeper::*)(Worker*);

  void start_all();
  bool is_over() const { return running_ == 0 && !has_children_; }
  void wait_and_serve();
  void watch(int fd, short events, Serve serve, Worker* worker = nullptr);
  int milliseconds_left() const;

  void take_out(Worker* worker);
  void take_err(Worker* worker);
  void take_report(Worker* worker);
  void take_lines(Fd& from, WorkerLines& lines, OutputQueue& to);
  void take_the_rest();

  void take_signals(Worker*);
  void pass_on(int signal);
  void reap(pid_t first);
  void ended(pid_t pid, int status);
  void failed(std::size_t rank, int status);
  std::string fate_of_others() const;
  void end_rest();
  void kill_rest();
  void take_loss_of_front(Worker*);

  OutputQueue& queue_of(Stream stream);
  bool may_write(const OutputQueue& queue) const;
  void write_queues(Worker*);
  void give_up_broken_queues();
  void say(const std::string& message);
  void print_summary();
  int exit_code() const;

  KeepOptions options_;
  Fd lifeline_;
  SignalReader signals_;
  OutputQueue out_{STDOUT_FILENO};
  OutputQueue err_{STDERR_FILENO};
  bool is_one_file_;  // both queues go there, where a line of one must not fall into a line of the other
  std::vector<Worker> workers_;
  std::size_t running_ = 0;
  bool has_children_ = true;  // or orphans of theirs
  std::optional<std::size_t> first_failure_;
  std::optional<Clock::time_point> deadline_;  // of those that were asked to end
  bool was_asked_to_end_ = false;              // by a signal that all workers have got
  int interrupts_ = 0;
  bool is_abandoned_ = false;  // nobody waits for output any more
  int write_error_ = 0;        // of an output, other than that its reader has gone

  std::vector<pollfd> polled_;
  std::vector<std::pair<Serve, Worker*>> served_;  // of each polled one
};

Keeper::Keeper(KeepOptions options, Fd lifeline)
    : options_(std::move(options)),
      lifeline_(std::move(lifeline)),
      signals_(options_.signals),
      is_one_file_(are_same_file(STDOUT_FILENO, STDERR_FILENO)) {}

Keeper::~Keeper() {
  if (!is_over()) kill_descendants([](pid_t, int) {});
}

int Keeper::run() {
  start_all();
  while (!is_over()) {
    wait_and_serve();
    const bool is_late = deadline_ && now() >= *deadline_;
    if (is_late) kill_rest();
    if (running_ == 0 && has_children_ && !deadline_) end_rest();  // what workers have left behind
  }
  take_the_rest();
  print_summary();
  write_queues(nullptr);
  while ((!out_.is_empty() || !err_.is_empty()) && !is_abandoned_) wait_and_serve();
  return exit_code();
}

void Keeper::start_all() {
  workers_.reserve(options_.launch.workers);  // they do not move: their addresses are passed around
  for (std::size_t rank = 0; rank < options_.launch.workers; ++rank) {
    workers_.push_back({start_worker(options_.launch, rank),
                        WorkerLines(options_.style, rank, Stream::kOut),
                        WorkerLines(options_.style, rank, Stream::kErr),
                        {}});
    ++running_;
  }
  if (options_.launch.first_stdin != STDIN_FILENO) close(options_.launch.first_stdin);  // worker 0 has it
}

// ---- waiting ----

void Keeper::watch(int fd, short events, Serve serve, Worker* worker) {
  if (fd < 0) return;
  polled_.push_back({fd, events, 0});
  served_.emplace_back(serve, worker);
}

int Keeper::milliseconds_left() const {
  if (!deadline_) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(*deadline_ - now()).count();
  return static_cast<int>(std::max<std::int64_t>(left, 0));
}

void Keeper::wait_and_serve() {
  polled_.clear();
  served_.clear();
  watch(lifeline_.get(), POLLIN, &Keeper::take_loss_of_front);
  watch(signals_.fd(), POLLIN, &Keeper::take_signals);
  for (OutputQueue* queue : {&out_, &err_}) {
    if (!queue->is_empty() && may_write(*queue)) watch(queue->fd(), POLLOUT, &Keeper::write_queues);
  }
  for (Worker& worker : workers_) {
    if (!queue_of(Stream::kOut).is_full())
      watch(worker.process.out.get(), POLLIN, &Keeper::take_out, &worker);
    if (!queue_of(Stream::kErr).is_full())
      watch(worker.process.err.get(), POLLIN, &Keeper::take_err, &worker);
    watch(worker.process.report.get(), POLLIN, &Keeper::take_report, &worker);
  }
  if (poll(polled_.data(), polled_.size(), milliseconds_left()) <= 0) return;
  for (std::size_t i = 0; i < polled_.size(); ++i) {
    if (polled_[i].revents != 0) (this->*served_[i].first)(served_[i].second);
  }
  write_queues(nullptr);
}

void Keeper::take_loss_of_front(Worker*) {
  lifeline_.reset();
  is_abandoned_ = true;
  kill_rest();
}

// ---- what workers write ----

void Keeper::take_lines(Fd& from, WorkerLines& lines, OutputQueue& to) {
  std::array<char, 65536> bytes;
  const ssize_t count = read(from.get(), bytes.data(), bytes.size());
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (count > 0) {
    to.append(lines.add({bytes.data(), static_cast<std::size_t>(count)}));
  } else {
    from.reset();
    to.append(lines.finish());
  }
}

void Keeper::take_out(Worker* worker) {
  take_lines(worker->process.out, worker->out, queue_of(Stream::kOut));
}

void Keeper::take_err(Worker* worker) {
  take_lines(worker->process.err, worker->err, queue_of(Stream::kErr));
}

void Keeper::take_report(Worker* worker) {
  std::array<char, 4096> message;
  const ssize_t count = recv(worker->process.report.get(), message.data(), message.size(), 0);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (count <= 0) {
    worker->process.report.reset();
  } else if (const auto report = parse_report({message.data(), static_cast<std::size_t>(count)})) {
    add_report(worker->ending.report, *report);
  }
}

// Nobody is left who could write more.
void Keeper::take_the_rest() {
  const auto has_more = [](const Fd& fd) {
    pollfd entry{fd.get(), POLLIN, 0};
    return fd.is_open() && poll(&entry, 1, 0) > 0;
  };
  for (Worker& worker : workers_) {
    while (has_more(worker.process.out)) take_out(&worker);
    while (has_more(worker.process.err)) take_err(&worker);
    while (has_more(worker.process.report)) take_report(&worker);
    queue_of(Stream::kOut).append(worker.out.finish());
    queue_of(Stream::kErr).append(worker.err.finish());
    worker.process = {};
  }
}

OutputQueue& Keeper::queue_of(Stream stream) {
  if (options_.style == LineStyle::kJson) return out_;
  return stream == Stream::kOut && !options_.launch.first_speaks ? out_ : err_;
}

bool Keeper::may_write(const OutputQueue& queue) const {
  const OutputQueue& other = &queue == &out_ ? err_ : out_;
  return !is_one_file_ || !other.is_inside_line();
}

void Keeper::write_queues(Worker*) {
  if (may_write(out_)) out_.write_some();
  if (may_write(err_)) err_.write_some();
  give_up_broken_queues();
}

// A worker that goes on writing learns it as if it had written there itself.
void Keeper::give_up_broken_queues() {
  for (const Stream stream : {Stream::kOut, Stream::kErr}) {
    const int error = queue_of(stream).error();
    if (error == 0) continue;
    for (Worker& worker : workers_)
      (stream == Stream::kOut ? worker.process.out : worker.process.err).reset();
    if (error == EPIPE || write_error_ != 0) continue;
    write_error_ = error;
    say(fmt::format("cannot write to standard {}: {}", &queue_of(stream) == &out_ ? "output" : "error",
                    std::strerror(error)));
  }
}

// ---- signals ----

void Keeper::take_signals(Worker*) {
  while (const auto signal = signals_.next()) {
    signal->number == SIGCHLD ? reap(signal->sender) : pass_on(signal->number);
  }
}

// To the whole group of a worker, as a terminal would; but what only a program that expects it survives, to
// the worker alone.
void Keeper::pass_on(int signal) {
  const bool is_for_worker_alone = signal == SIGUSR1 || signal == SIGUSR2;
  for (const Worker& worker : workers_) {
    if (worker.is_running) kill(is_for_worker_alone ? worker.process.pid : -worker.process.pid, signal);
  }
  if (asks_to_end(signal)) was_asked_to_end_ = true;
  if (asks_to_end(signal) && is_over()) is_abandoned_ = true;
  if (signal != SIGINT || is_over()) return;
  ++interrupts_;
  if (interrupts_ == 1) say("SIGINT is passed on to all workers; a second one kills them");
  if (interrupts_ == 2) kill_rest();
}

// Of children that ended at the same time, the kernel tells which was the first.
void Keeper::reap(pid_t first) {
  int status = 0;
  if (waitpid(first, &status, WNOHANG) == first) ended(first, status);
  pid_t pid = 0;
  while ((pid = waitpid(-1, &status, WNOHANG)) > 0) ended(pid, status);
  has_children_ = pid == 0;
}

void Keeper::ended(pid_t pid, int status) {
  const auto worker = std::ranges::find_if(
      workers_, [&](const Worker& one) { return one.is_running && one.process.pid == pid; });
  if (worker == workers_.end()) return;  // an orphan
  worker->is_running = false;
  worker->ending.status = status;
  --running_;
  if (exit_code_of(status) != 0) failed(static_cast<std::size_t>(worker - workers_.begin()), status);
}

// ---- the end ----

void Keeper::failed(std::size_t rank, int status) {
  const bool is_first = !first_failure_;
  if (is_first) first_failure_ = rank;
  if (deadline_ || is_abandoned_) return;  // it was ended
  if (is_first) {
    say(fmt::format("worker {} failed first: {}; {}", rank, ending_text(status), fate_of_others()));
  } else if (options_.keep_going) {
    say(fmt::format("worker {} failed: {}", rank, ending_text(status)));
  }
  if (!options_.keep_going && running_ > 0) end_rest();
}

std::string Keeper::fate_of_others() const {
  const std::string others = running_ == 1 ? "the other one" : fmt::format("the other {}", running_);
  if (running_ == 0) return "no other was running";
  if (options_.keep_going) return others + (running_ == 1 ? " goes on" : " go on");
  return fmt::format("{} {}{} {:g} s to end", others,
                     was_asked_to_end_ ? ""
                     : running_ == 1   ? "gets SIGTERM and "
                                       : "get SIGTERM and ",
                     running_ == 1 ? "has" : "have", options_.grace_seconds);
}

// Workers that have got a signal to end are not disturbed by another one.
void Keeper::end_rest() {
  deadline_ = now() + std::chrono::duration_cast<Clock::duration>(
                          std::chrono::duration<double>(options_.grace_seconds));
  for (const Worker& worker : workers_) {
    if (!worker.is_running) continue;
    if (!was_asked_to_end_) kill(-worker.process.pid, SIGTERM);
    kill(-worker.process.pid, SIGCONT);  // one that is stopped could not end
  }
  const auto is_in_running_group = [&](pid_t pid) {
    const pid_t group = getpgid(pid);
    return std::ranges::any_of(
        workers_, [&](const Worker& worker) { return worker.is_running && worker.process.pid == group; });
  };
  for (const pid_t pid : living_descendants()) {
    if (is_in_running_group(pid)) continue;
    kill(pid, SIGTERM);
    kill(pid, SIGCONT);
  }
}

void Keeper::kill_rest() {
  std::vector<std::size_t> running;
  for (std::size_t rank = 0; rank < workers_.size(); ++rank) {
    if (workers_[rank].is_running) running.push_back(rank);
  }
  if (!running.empty()) {
    const bool is_one = running.size() == 1;
    say(fmt::format("{} {}{}{} killed with SIGKILL", is_one ? "worker" : "workers", fmt::join(running, ", "),
                    deadline_ ? fmt::format(" did not end within {:g} s and", options_.grace_seconds) : "",
                    is_one ? " was" : " were"));
  }
  deadline_ = now();
  const std::vector<pid_t> left = kill_descendants([&](pid_t pid, int status) { ended(pid, status); });
  if (!left.empty())
    say(fmt::format("the system does not let go of the processes {}", fmt::join(left, ", ")));
  running_ = 0;
  has_children_ = false;
  deadline_.reset();
}

void Keeper::say(const std::string& message) {
  constexpr const char* kEraseLine = "\r\033[K";  // worker 0 may have left one without an end
  const bool is_after_line = options_.launch.first_speaks && isatty(STDERR_FILENO) == 1;
  err_.append((is_after_line ? kEraseLine : "") + ("onesum: " + message) + "\n");
}

void Keeper::print_summary() {
  if (options_.launch.first_speaks) return;
  std::vector<WorkerEnding> endings;
  for (const Worker& worker : workers_) endings.push_back(worker.ending);
  options_.style == LineStyle::kJson ? out_.append(summary_json(endings))
                                     : err_.append(summary_text(endings));
}

int Keeper::exit_code() const {
  int code = write_error_ != 0 ? 1 : 0;
  if (!first_failure_) return code;
  if (!options_.keep_going) return exit_code_of(workers_[*first_failure_].ending.status);
  for (const Worker& worker : workers_) code = std::max(code, exit_code_of(worker.ending.status));
  return code;
}

}  // namespace

int keep_workers(KeepOptions options, Fd lifeline) {
  adopt_orphans();
  Keeper keeper(std::move(options), std::move(lifeline));
  return keeper.run();
}

}  // namespace onesum::cli
