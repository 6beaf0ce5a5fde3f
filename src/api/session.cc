#include "api/session.h"

#include <algorithm>
#include <exception>
#include <utility>

#include <fmt/format.h>

#include <onesum/error.h>

#include "api/community.h"
#include "base/log.h"
#include "engine/native.h"
#include "planner/joint_request.h"

namespace onesum::api {
namespace {

constexpr std::chrono::seconds kLongWait{10};
constexpr std::chrono::milliseconds kAnswerPatience{1000};
// A worker that has closed the cluster may have sent its last messages just before.
constexpr std::chrono::milliseconds kFarewell{1000};

void describe_refusal(const std::exception_ptr& refusal, cluster::Statement& statement) {
  statement.is_refused = true;
  statement.request.clear();
  try {
    std::rethrow_exception(refusal);
  } catch (const Error& error) {
    statement.code = error.code();
    statement.text = error.what();
  } catch (const std::exception& error) {
    statement.code = ErrorCode::kAborted;
    statement.text = error.what();
  }
}

std::string seconds_of(Clock::duration time) {
  return fmt::format("{:.0f} s", std::chrono::duration<double>(time).count());
}

Fingerprint fingerprint_of(const std::vector<cluster::Statement>& statements) {
  Hasher hasher;
  for (const cluster::Statement& statement : statements) {
    const auto* text = reinterpret_cast<const char*>(statement.request.data());
    hasher.add(std::string_view(text, statement.request.size()));
  }
  return hasher.finish();
}

}  // namespace

Session::Session(std::unique_ptr<engine::Transport> transport, std::unique_ptr<cluster::Epoch> epoch,
                 SessionOptions options)
    : transport_(std::move(transport)),
      epoch_(std::move(epoch)),
      options_(std::move(options)),
      waited_for_(options_.workers.size()) {}

Session::~Session() {
  close();
  quit();
  report();
}

void Session::close() noexcept {
  if (is_closed_.exchange(true)) return;
  epoch_->close();
  if (is_inside_.load()) return;  // the call ends now, and with it all that it uses
  quit();
  report();
}

void Session::quit() noexcept {
  if (!has_quit_.exchange(true)) transport_->quit();
}

// Tells `onesum run`.
void Session::report() noexcept {
  const std::optional<ReportTarget>& target = options_.community->report;
  if (!target || std::exchange(has_reported_, true)) return;
  using Seconds = std::chrono::duration<double>;
  WorkerReport report{calls_, bytes_, Seconds(waited_).count()};
  const auto most = std::ranges::max_element(waited_for_);
  if (most != waited_for_.end() && most->count() > 0) {
    const auto rank = static_cast<std::size_t>(most - waited_for_.begin());
    report.most_waited_for = static_cast<unsigned>(epoch_->group().seats[rank]);
    report.waited_for_it_seconds = Seconds(*most).count();
  }
  send_report(*target, report);
}

void Session::give_up(const Error& error) {
  epoch_->accuse(
      {error.code(), epoch_->rank(), 0,
       fmt::format("{} gave up a call before its turn: {}", epoch_->name_of(epoch_->rank()), error.what())});
  epoch_->throw_verdict();
}

void Session::count(std::size_t bytes, const exec::Waiting& waiting) noexcept {
  ++calls_;
  bytes_ += bytes;
  waited_ += waiting.time;
  if (waiting.longest_for >= 0) waited_for_[static_cast<std::size_t>(waiting.longest_for)] += waiting.longest;
}

const plan::CostConstants& Session::constants() const noexcept { return options_.community->constants; }

exec::Site Session::site(engine::ThreadedEngine& host, std::vector<engine::QueuedEngine*> queued) const {
  std::vector<engine::NearBoxes> near(static_cast<std::size_t>(epoch_->size()));
  for (int rank = 0; rank < epoch_->size(); ++rank) {
    if (rank != epoch_->rank()) near[static_cast<std::size_t>(rank)] = transport_->near_boxes(rank);
  }
  return {host, epoch_->rank(), transport_->limits(), std::move(near), std::move(queued)};
}

// Looks after a run: who is waited for, whether it lives and gets on.
class Session::Call::Watch final : public exec::Watch {
 public:
  explicit Watch(Call& call) : call_(call), epoch_(*call.session_.epoch_) {}

  void begin(std::uint64_t beat) noexcept override { recorder().set_progress(beat, -1); }

  bool must_end() const noexcept override { return epoch_.has_ended(); }

  void look(int peer, std::uint64_t beat) override {
    epoch_.check();
    epoch_.set_progress(beat, peer);
    recorder().set_progress(beat, peer);
    if (peer < 0) return;
    if (peer != peer_) {
      peer_ = peer;
      since_ = now();
      next_warning_ = since_ + kLongWait;
    }
    const cluster::Sighting sighting = epoch_.sighting(peer);
    check_left(sighting);
    check_progress(sighting);
    if (now() >= next_warning_) warn(sighting);
  }

  void look_at_all(std::span<const int> ranks, std::uint64_t beat) override {
    const auto is_missing = [&](int rank) { return rank != epoch_.rank() && !epoch_.takes_part(rank); };
    const auto missing = std::ranges::find_if(ranks, is_missing);
    look(missing == ranks.end() ? -1 : *missing, beat);
  }

  void go_on(std::uint64_t beat) noexcept override {
    epoch_.set_progress(beat, -1);
    recorder().set_progress(beat, -1);
    peer_ = -1;
  }

  void refuse(int peer, engine::Arrival arrival) override {
    if (arrival == engine::Arrival::kCorrupt) {
      call_.fail(ErrorCode::kAborted, peer,
                 fmt::format("a message of {} in {} was changed on its way: its checksum is wrong",
                             epoch_.name_of(peer), call_.name()));
    }
    const auto answer = epoch_.ask(peer, kAnswerPatience);
    call_.fail(
        ErrorCode::kInvalidArgument, peer,
        fmt::format("workers call differently: {} is in {}, {} is in {}", epoch_.name_of(epoch_.rank()),
                    call_.name(), epoch_.name_of(peer),
                    answer ? fmt::format("call {} ({})", answer->call, answer->text) : "another call"));
  }

 private:
  cluster::FlightRecorder& recorder() const noexcept { return call_.session_.options_.recorder; }
  std::string waited() const { return seconds_of(now() - since_); }

  void check_left(const cluster::Sighting& sighting) {
    if (!sighting.has_left) {
      left_since_ = {};
      return;
    }
    if (sighting.where.is_inside && sighting.where.calls == call_.number_ + 1) {
      call_.fail(ErrorCode::kAborted, peer_,
                 fmt::format("{} closed the cluster inside {}", epoch_.name_of(peer_), call_.name()));
    }
    if (left_since_ == Clock::time_point{}) left_since_ = now();
    if (now() - left_since_ < kFarewell) return;
    call_.fail(ErrorCode::kAborted, peer_,
               fmt::format("{} closed the cluster after {} calls; {} is in {}", epoch_.name_of(peer_),
                           sighting.where.calls, epoch_.name_of(epoch_.rank()), call_.name()));
  }

  // Whoever waits for another is not to blame, nor is one that has not come yet: the timeout is for that.
  void check_progress(const cluster::Sighting& sighting) {
    const bool works = sighting.where.is_inside && sighting.where.waits_for < 0;
    const Clock::time_point since = std::max(since_, sighting.progressed);
    if (!works || sighting.where.calls != call_.number_ + 1) return;
    if (now() - since < call_.session_.options_.community->progress_timeout) return;
    call_.fail(ErrorCode::kAborted, peer_,
               fmt::format("{} is in {} and made no progress for {}", epoch_.name_of(peer_), call_.name(),
                           seconds_of(now() - since)));
  }

  void warn(const cluster::Sighting& sighting) {
    next_warning_ = now() + kLongWait;
    const std::uint64_t calls = sighting.where.calls;
    log(LogLevel::kWarning,
        fmt::format("{} has waited {} for {}, which {}", call_.name(), waited(), epoch_.name_of(peer_),
                    calls > call_.number_ ? "is in the call too"
                                          : fmt::format("has not entered it: it has made {} calls", calls)));
  }

  Call& call_;
  cluster::Epoch& epoch_;
  int peer_ = -1;
  Clock::time_point since_;
  Clock::time_point next_warning_;
  Clock::time_point left_since_;
};

Session::Call::Call(Session& session, std::uint64_t words, Clock::time_point deadline)
    : session_(session), deadline_(deadline) {
  session_.is_inside_.store(true);
  try {
    if (session_.is_closed_.load()) session_.epoch_->throw_verdict();
    session_.epoch_->check();
  } catch (...) {
    session_.is_inside_.store(false);
    throw;
  }
  number_ = session_.epoch_->enter(words);
  session_.options_.recorder.enter(number_, words);
}

Session::Call::~Call() {
  const bool has_completed = std::uncaught_exceptions() == exceptions_;
  if (has_completed) session_.completed_.store(session_.completed_calls() + 1, std::memory_order_relaxed);
  session_.options_.recorder.leave(has_completed);
  session_.epoch_->leave();
  session_.is_inside_.store(false);
}

void Session::Call::set_text(std::string_view text) noexcept {
  text_ = text;
  session_.options_.recorder.describe(text);
}

std::string Session::Call::name() const {
  return text_.empty() ? fmt::format("call {}", number_) : fmt::format("call {} ({})", number_, text_);
}

void Session::Call::fail(ErrorCode code, int suspect, const std::string& text) {
  session_.epoch_->accuse({code, suspect, number_, text});
  session_.epoch_->throw_verdict();
}

JointCall Session::Call::join_with(const planner::Request& mine, std::exception_ptr refusal) {
  cluster::Epoch& epoch = *session_.epoch_;
  cluster::Statement statement;
  statement.call = number_;
  if (!refusal) {
    statement.text = told_ = planner::describe(mine);
    set_text(told_);
    statement.request = planner::to_bytes(mine);
    if (statement.request.size() > cluster::kMostOfferBytes) {
      refusal = std::make_exception_ptr(Error(
          ErrorCode::kUnimplemented,
          fmt::format("a call of {} values takes {} bytes to describe to the other workers; expected at "
                      "most {}: divide it",
                      mine.pairs.size(), statement.request.size(), cluster::kMostOfferBytes)));
    }
  }
  if (refusal) describe_refusal(refusal, statement);
  const std::vector<cluster::Statement> all = exchange(statement, refusal);
  std::vector<planner::Request> requests;
  for (const cluster::Statement& said : all) requests.push_back(planner::request_from(said.request));
  JointCall joint;
  joint.fingerprint = fingerprint_of(all);
  joint.words = std::make_shared<cluster::Words>(cluster::Words{statement.text, statement.request});
  try {
    joint.request = planner::joined(requests, session_.options_.workers);
  } catch (const Error& error) {
    fail(error.code(), -1, fmt::format("call {}: {}", number_, error.what()));
  }
  planner::mark_in_place(joint.request, requests, static_cast<std::size_t>(epoch.rank()), mine);
  joint.request.options = mine.options;
  return joint;
}

std::vector<cluster::Statement> Session::Call::exchange(const cluster::Statement& mine,
                                                        const std::exception_ptr& refusal) {
  std::vector<cluster::Statement> all = session_.epoch_->exchange(mine, deadline_);
  const auto refuses = [](const cluster::Statement& s) { return s.is_refused; };
  if (refusal && std::ranges::all_of(all, refuses)) std::rethrow_exception(refusal);
  for (std::size_t r = 0; r < all.size(); ++r) {
    const auto rank = static_cast<int>(r);
    if (all[r].is_refused) {
      fail(all[r].code, rank,
           fmt::format("{} refused call {}: {}", session_.epoch_->name_of(rank), number_, all[r].text));
    }
    if (!mine.is_refused && all[r].subject != mine.subject) fail_by_difference(mine, all[r], rank);
  }
  return all;
}

void Session::Call::fail_by_difference(const cluster::Statement& mine, const cluster::Statement& other,
                                       int rank) {
  const cluster::Epoch& epoch = *session_.epoch_;
  fail(ErrorCode::kInvalidArgument, rank,
       fmt::format("workers call differently: {} calls {}, {} calls {} as call {}",
                   epoch.name_of(epoch.rank()), mine.text, epoch.name_of(rank), other.text, number_));
}

std::vector<cluster::Statement> Session::Call::agree(cluster::Statement mine,
                                                     const std::function<void()>& check) {
  mine.call = number_;
  told_ = mine.text;
  set_text(told_);
  std::exception_ptr refusal;
  try {
    if (check) check();
  } catch (const Error&) {
    refusal = std::current_exception();
    describe_refusal(refusal, mine);
  }
  return exchange(mine, refusal);
}

exec::Waiting Session::Call::run(exec::Instance& instance, std::uint64_t token, std::size_t bytes,
                                 exec::FunctionCaller* caller) {
  token += number_;  // whoever is a call behind has another one
  session_.options_.recorder.set_token(token);
  Watch watch(*this);
  const exec::Crossing crossing{*session_.transport_, watch, session_.beats_, token,
                                session_.options_.is_crowded};
  const auto rounds = static_cast<std::uint64_t>(instance.program().rounds.size());
  try {
    const exec::Waiting waiting = exec::Executor::run(instance, deadline_, caller, &crossing);
    session_.beats_ += rounds;
    session_.epoch_->set_progress(session_.beats_, -1);
    session_.count(bytes, waiting);
    return waiting;
  } catch (...) {
    end_after(std::current_exception());
  }
}

// "worker 0 (…), which waited for worker 1 (…), which …"
std::string Session::Call::who_waits() const {
  const cluster::Epoch& epoch = *session_.epoch_;
  const std::string missing = epoch.who_is_missing();
  return epoch.name_of(epoch.rank()) + (missing.empty() ? "" : ", which waited for " + missing);
}

// A library knows only that somebody is gone; the epoch hears in a moment who it is.
void Session::Call::fail_by_loss(const Error& error) {
  cluster::Epoch& epoch = *session_.epoch_;
  if (epoch.ends_within(kFarewell)) epoch.throw_verdict();
  fail(ErrorCode::kAborted, -1, fmt::format("{} failed on {}: {}", name(), who_waits(), error.what()));
}

// The run is over, for everybody: nobody knows what of it was done.
void Session::Call::end_after(const std::exception_ptr& exception) {
  cluster::Epoch& epoch = *session_.epoch_;
  const bool was_over = epoch.has_ended();
  session_.quit();
  if (was_over) epoch.throw_verdict();
  try {
    std::rethrow_exception(exception);
  } catch (const engine::PeerLost& error) {
    fail_by_loss(error);
  } catch (const std::exception& error) {  // also what a caller's function threw
    const auto* const own = dynamic_cast<const Error*>(&error);
    if (own != nullptr && own->code() == ErrorCode::kDeadlineExceeded) {
      fail(own->code(), epoch.rank(),
           fmt::format("{} did not finish within the timeout of {}: {}", name(), who_waits(), error.what()));
    }
    epoch.accuse({ErrorCode::kAborted, epoch.rank(), number_,
                  fmt::format("{} failed in {}: {}", epoch.name_of(epoch.rank()), name(), error.what())});
    epoch.await_verdict();  // a process that ended at once would be found gone before the others hear why
    throw;
  } catch (...) {
    epoch.accuse({ErrorCode::kAborted, epoch.rank(), number_,
                  fmt::format("{} failed in {}", epoch.name_of(epoch.rank()), name())});
    epoch.await_verdict();  // a process that ended at once would be found gone before the others hear why
    throw;
  }
}

}  // namespace onesum::api
