#include "cluster/epoch.h"

#include <algorithm>
#include <array>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>

#include <onesum/error.h>

#include "base/log.h"
#include "cluster/socket.h"

namespace onesum::cluster {
namespace {

using std::chrono::milliseconds;

// How long a verdict is awaited: the worker that gives it may have to notice first that another one is dead.
constexpr std::chrono::seconds kVerdictPatience{5};
constexpr std::chrono::seconds kLongWait{10};
constexpr milliseconds kGoodbyePatience{200};
constexpr milliseconds kMostInterval{500};
// Calls that a worker can still be asked about.
constexpr std::size_t kHistory = 64;
// Statements that one worker may send ahead of this one's calls.
constexpr std::size_t kMostAhead = 16;

Fd open_pidfd(const Connection& connection) {
  const auto credentials = peer_credentials(connection.socket());
  if (!credentials || credentials->process <= 0) return {};
  return Fd(static_cast<int>(::syscall(SYS_pidfd_open, credentials->process, 0)));
}

void wake(int eventfd) noexcept {
  const std::uint64_t one = 1;
  if (eventfd >= 0) (void)!::write(eventfd, &one, sizeof one);  // full: it is awake already
}

void drain(int eventfd) noexcept {
  std::uint64_t count = 0;
  (void)!::read(eventfd, &count, sizeof count);
}

}  // namespace

// The thread, and what it shares with the callers.
class Epoch::Service {
 public:
  Service(Epoch& epoch, std::vector<Connection> connections, const EpochOptions& options)
      : epoch_(epoch),
        silence_(options.silence),
        interval_(std::clamp<milliseconds>(options.silence / 10, milliseconds{10}, kMostInterval)),
        caller_wake_(options.wake),
        service_wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        peers_(connections.size()) {
    if (!service_wake_) throw Error(ErrorCode::kResourceExhausted, "no descriptor for an eventfd is left");
    for (std::size_t r = 0; r < connections.size(); ++r) {
      peers_[r].connection = std::move(connections[r]);
      if (!peers_[r].connection.is_open()) continue;
      peers_[r].state = State::kHere;
      peers_[r].process_ended = open_pidfd(peers_[r].connection);
      peers_[r].heard = now();
      peers_[r].sighting.progressed = now();
    }
    thread_ = std::thread([this] { run(); });
  }

  ~Service() { close(); }

  void close() noexcept {
    {
      const std::lock_guard lock(mutex_);
      is_closing_ = true;
      if (!verdict_)
        verdict_ = Verdict{ErrorCode::kAborted, epoch_.rank_, 0, "this worker has closed the cluster"};
      end();
    }
    wake(service_wake_.get());
    if (thread_.joinable()) thread_.join();
  }

  std::uint64_t add_words(std::shared_ptr<const Words> words) {
    const std::lock_guard lock(mutex_);
    words_.emplace(++last_words_, std::move(words));
    return last_words_;
  }
  void forget_words(std::uint64_t number) {
    const std::lock_guard lock(mutex_);
    words_.erase(number);
  }

  std::uint64_t enter(std::uint64_t words) noexcept {
    const std::uint64_t call = calls_.load(std::memory_order_relaxed);
    // Released with calls_, whose readers look at the history afterwards.
    history_[call % kHistory].store(words, std::memory_order_relaxed);
    is_inside_.store(true, std::memory_order_relaxed);
    calls_.store(call + 1, std::memory_order_seq_cst);
    // With the service's store to is_asked_ before its load of calls_: one of the two sees the other.
    if (is_asked_.load(std::memory_order_seq_cst)) wake(service_wake_.get());
    return call;
  }
  void leave() noexcept { is_inside_.store(false, std::memory_order_relaxed); }
  void set_progress(std::uint64_t beats, int waits_for) noexcept {
    beats_.store(beats, std::memory_order_relaxed);
    waits_for_.store(waits_for, std::memory_order_relaxed);
  }

  std::vector<Statement> exchange(const Statement& mine, Clock::time_point deadline) {
    std::unique_lock lock(mutex_);
    const Bytes bytes = to_bytes(mine);
    for (std::size_t r = 0; r < peers_.size(); ++r) {
      if (is_other(r)) outbox_.push_back({r, Tell::kStatement, bytes});
    }
    wake(service_wake_.get());
    Statements& statements = statements_of(mine.call);
    statements[static_cast<std::size_t>(epoch_.rank_)] = mine;
    const auto all_told = [&] {
      return std::ranges::all_of(statements, [](const auto& s) { return s.has_value(); });
    };
    Clock::time_point next_warning = now() + kLongWait;
    while (!all_told() && !epoch_.has_ended()) {
      waits_for_.store(first_absent(statements), std::memory_order_relaxed);
      changed_.wait_until(lock, std::min(deadline, next_warning));
      if (all_told() || epoch_.has_ended()) break;
      accuse_who_left(mine, statements);
      if (now() >= deadline) {
        accuse_absent(mine, statements);
        break;
      }
      if (now() >= next_warning) {
        log(LogLevel::kWarning,
            fmt::format("call {} ({}) waits for {}", mine.call, mine.text, absent(statements)));
        next_warning = now() + kLongWait;
      }
    }
    waits_for_.store(-1, std::memory_order_relaxed);
    if (!all_told()) {
      lock.unlock();
      epoch_.throw_verdict();
    }
    std::vector<Statement> result;
    for (std::optional<Statement>& statement : statements) result.push_back(std::move(*statement));
    statements_.erase(mine.call);
    return result;
  }

  std::optional<Statement> ask(int rank, milliseconds patience) {
    std::unique_lock lock(mutex_);
    Peer& peer = peers_[static_cast<std::size_t>(rank)];
    peer.answer.reset();
    outbox_.push_back({static_cast<std::size_t>(rank), Tell::kQuestion, {}});
    wake(service_wake_.get());
    changed_.wait_for(lock, patience, [&] { return peer.answer.has_value() || peer.state != State::kHere; });
    return peer.answer;
  }

  Sighting sighting(int rank) const {
    const std::lock_guard lock(mutex_);
    return peers_[static_cast<std::size_t>(rank)].sighting;
  }

  void accuse(const Verdict& reason) {
    const std::lock_guard lock(mutex_);
    accusations_.push_back(reason);
    end();
    wake(service_wake_.get());
  }

  [[noreturn]] void throw_verdict() {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kVerdictPatience, [&] { return verdict_.has_value(); });
    if (verdict_) throw Error(verdict_->code, verdict_->text);
    throw Error(ErrorCode::kUnavailable,
                fmt::format("cut off from {}: the group has failed, and it does not say why",
                            epoch_.name_of(static_cast<int>(judge()))));
  }

 private:
  enum class State : std::uint8_t { kSelf, kHere, kLeft, kGone };
  struct Peer {
    Connection connection;
    Fd process_ended;  // readable when it has; none where the kernel cannot tell
    State state = State::kSelf;
    Clock::time_point heard;
    Sighting sighting;
    std::optional<Statement> answer;
  };
  struct Outgoing {
    std::size_t rank;
    Tell kind;
    Bytes bytes;
  };
  using Statements = std::vector<std::optional<Statement>>;

  bool is_other(std::size_t rank) const { return static_cast<int>(rank) != epoch_.rank_; }

  // ---- with the mutex held

  Statements& statements_of(std::uint64_t call) {
    Statements& statements = statements_[call];
    statements.resize(peers_.size());
    return statements;
  }

  std::string absent(const Statements& statements) const {
    std::string list;
    for (std::size_t r = 0; r < statements.size(); ++r) {
      if (statements[r]) continue;
      list.append(list.empty() ? "" : ", ").append(describe(r));
    }
    return list;
  }

  std::string describe(std::size_t rank) const {
    const std::string name = epoch_.name_of(static_cast<int>(rank));
    if (peers_[rank].state == State::kLeft) return name + ", which has closed the cluster";
    return name + ", which was last seen " + whereabouts_of(rank);
  }

  // As it told last, which may be half a second ago.
  std::string whereabouts_of(std::size_t rank) const {
    const Whereabouts& where = peers_[rank].sighting.where;
    if (!where.is_inside) return fmt::format("outside of calls, after {} of them", where.calls);
    const std::string call = fmt::format("in call {}", where.calls - 1);
    return where.waits_for < 0 ? call : fmt::format("{}, waiting for worker {}", call, where.waits_for);
  }

  static int first_absent(const Statements& statements) {
    const auto absent = std::ranges::find_if(statements, [](const auto& s) { return !s.has_value(); });
    return absent == statements.end() ? -1 : static_cast<int>(absent - statements.begin());
  }

  // What it said before it left has come before its goodbye.
  void accuse_who_left(const Statement& mine, const Statements& statements) {
    for (std::size_t r = 0; r < statements.size(); ++r) {
      if (statements[r] || peers_[r].state != State::kLeft) continue;
      accusations_.push_back({ErrorCode::kAborted, static_cast<std::int32_t>(r), mine.call,
                              fmt::format("{} closed the cluster after {} calls; {} is in call {} ({})",
                                          epoch_.name_of(static_cast<int>(r)), peers_[r].sighting.where.calls,
                                          epoch_.name_of(epoch_.rank_), mine.call, mine.text)});
      end();
      wake(service_wake_.get());
      return;
    }
  }

  void accuse_absent(const Statement& mine, const Statements& statements) {
    accusations_.push_back(
        {ErrorCode::kDeadlineExceeded, first_absent(statements), mine.call,
         fmt::format("call {} ({}) did not begin within the timeout of {}; waited for {}", mine.call,
                     mine.text, epoch_.name_of(epoch_.rank_), absent(statements))});
    end();
    wake(service_wake_.get());
  }

  // The waiting threads learn that it is over; the verdict follows.
  void end() {
    epoch_.has_ended_.store(true, std::memory_order_relaxed);
    wake(caller_wake_);
    changed_.notify_all();
  }

  // The lowest rank that is not known to be gone.
  std::size_t judge() const {
    std::size_t rank = 0;
    while (is_other(rank) && peers_[rank].state != State::kHere) ++rank;
    return rank;
  }

  void set_verdict(const Verdict& verdict) {
    if (verdict_) return;
    verdict_ = verdict;
    log(LogLevel::kInfo, "the group has failed: " + verdict.text);
    // Everyone passes it on, so that it reaches all even if the one who gave it dies now.
    for (std::size_t r = 0; r < peers_.size(); ++r) {
      if (peers_[r].state == State::kHere) tell(r, Tell::kVerdict, to_bytes(verdict));
    }
    end();
  }

  // As the judge: what came first counts. Otherwise the judge is told.
  void judge_or_report(const Verdict& reason) {
    end();
    if (verdict_) return;
    const std::size_t rank = judge();
    if (is_other(rank)) {
      tell(rank, Tell::kAccusation, to_bytes(reason));
      reported_ = reason;
      reported_to_ = rank;
    } else {
      set_verdict(reason);
    }
  }

  void tell(std::size_t rank, Tell kind, const Bytes& bytes) {
    Peer& peer = peers_[rank];
    if (peer.state != State::kHere) return;
    try {
      peer.connection.queue(static_cast<std::uint16_t>(kind), bytes);
    } catch (const Error& error) {  // longer than a message may be
      lose(rank, error.what());
    }
  }

  void lose(std::size_t rank, const std::string& how) {
    Peer& peer = peers_[rank];
    if (peer.state != State::kHere) return;
    const std::string text = fmt::format("{} is gone: {}; it was last seen {}",
                                         epoch_.name_of(static_cast<int>(rank)), how, whereabouts_of(rank));
    peer.state = State::kGone;
    peer.connection.close();
    peer.process_ended.reset();
    if (is_closing_) return;
    judge_or_report({ErrorCode::kAborted, static_cast<std::int32_t>(rank), peer.sighting.where.calls, text});
    report_again(rank);
  }

  // The one who should have judged is no longer here.
  void report_again(std::size_t rank) {
    if (reported_ && reported_to_ == rank) judge_or_report(*std::exchange(reported_, std::nullopt));
  }

  void take(std::size_t rank, const Message& message) {
    Peer& peer = peers_[rank];
    peer.heard = now();
    switch (static_cast<Tell>(message.kind)) {
      case Tell::kWhereabouts: {
        const Whereabouts where = whereabouts_from(message.payload);
        if (where != peer.sighting.where) peer.sighting.progressed = peer.heard;
        peer.sighting.where = where;
        return;
      }
      case Tell::kGoodbye:
        peer.state = State::kLeft;
        peer.sighting.has_left = true;
        peer.connection.close();
        peer.process_ended.reset();
        changed_.notify_all();
        report_again(rank);
        return;
      case Tell::kStatement:
        take_statement(rank, statement_from(message.payload));
        return;
      case Tell::kQuestion:
        tell(rank, Tell::kAnswer, to_bytes(last_statement()));
        return;
      case Tell::kAnswer:
        peer.answer = statement_from(message.payload);
        changed_.notify_all();
        return;
      case Tell::kAccusation:
        if (is_closing_) return;  // a goodbye is on its way, and whoever accuses will ask the next
        judge_or_report(verdict_from(message.payload));
        if (verdict_) tell(rank, Tell::kVerdict, to_bytes(*verdict_));
        return;
      case Tell::kVerdict:
        set_verdict(verdict_from(message.payload));
        return;
    }
    throw Error(ErrorCode::kInvalidArgument, fmt::format("sent a message of unknown kind {}", message.kind));
  }

  void take_statement(std::size_t rank, Statement statement) {
    const std::uint64_t call = statement.call;
    const auto ahead =
        std::ranges::count_if(statements_, [&](const auto& s) { return s.second[rank].has_value(); });
    if (static_cast<std::size_t>(ahead) >= kMostAhead) {
      throw Error(ErrorCode::kInvalidArgument, fmt::format("sent more than {} statements ahead", kMostAhead));
    }
    const bool is_refused = statement.is_refused;
    const std::string text = statement.text;
    statements_of(call)[rank] = std::move(statement);
    changed_.notify_all();
    is_asked_.store(true, std::memory_order_seq_cst);
    answer();
    if (is_refused && answered_call_ == call) {
      judge_or_report(
          {ErrorCode::kAborted, static_cast<std::int32_t>(rank), call,
           fmt::format("{} refused call {}: {}", epoch_.name_of(static_cast<int>(rank)), call, text)});
    }
  }

  Statement last_statement() const {
    const std::uint64_t calls = calls_.load(std::memory_order_seq_cst);
    if (calls == 0) return {0, false, {}, "nothing yet", {}};
    return statement_of(calls - 1);
  }

  // What this worker said, or can say, of one of its calls.
  Statement statement_of(std::uint64_t call) const {
    Statement mine{call, false, {}, "a call that it has forgotten", {}};
    const auto told = statements_.find(call);
    if (told != statements_.end() && told->second[static_cast<std::size_t>(epoch_.rank_)]) {
      return *told->second[static_cast<std::size_t>(epoch_.rank_)];
    }
    const auto known = words_.find(history_[call % kHistory].load(std::memory_order_relaxed));
    const bool is_recent = call + kHistory > calls_.load(std::memory_order_relaxed);
    if (!is_recent || known == words_.end()) {
      mine.is_refused = true;
      mine.code = ErrorCode::kAborted;
      return mine;
    }
    mine.text = known->second->text;
    mine.request = known->second->request;
    return mine;
  }

  // Workers that make a call for the first time are told what this one calls, which may have made it before.
  void answer() {
    const std::uint64_t calls = calls_.load(std::memory_order_seq_cst);
    bool is_asked = false;
    for (auto s = statements_.begin(); s != statements_.end();) {
      if (s->first >= calls) {
        is_asked = true;
        ++s;
        continue;
      }
      const std::uint64_t words = history_[s->first % kHistory].load(std::memory_order_relaxed);
      const bool is_recent = s->first + kHistory > calls;
      if (words == 0 && is_recent) {  // exchange() tells everyone, or did
        ++s;
        continue;
      }
      const Statement mine = statement_of(s->first);
      for (std::size_t r = 0; r < peers_.size(); ++r) {
        if (s->second[r]) tell(r, Tell::kStatement, to_bytes(mine));
      }
      answered_call_ = s->first;
      s = statements_.erase(s);
    }
    is_asked_.store(is_asked, std::memory_order_seq_cst);
  }

  // ---- the thread

  void run() {
    std::unique_lock lock(mutex_);
    Clock::time_point next_beat = now();
    Clock::time_point give_up = Clock::time_point::max();
    for (;;) {
      deliver();
      if (is_closing_ && give_up == Clock::time_point::max()) {
        give_up = now() + kGoodbyePatience;
        for (std::size_t r = 0; r < peers_.size(); ++r) tell(r, Tell::kGoodbye, {});
      }
      if (now() >= next_beat) {
        check_silence(now() - next_beat);
        send_whereabouts();
        next_beat = now() + interval_;
      }
      flush_all();
      if (is_closing_ && (now() >= give_up || !has_unsent())) break;
      wait_and_read(lock, std::min(next_beat, give_up));
    }
    for (Peer& peer : peers_) peer.connection.close();
  }

  void deliver() {
    for (const Outgoing& message : std::exchange(outbox_, {}))
      tell(message.rank, message.kind, message.bytes);
    for (const Verdict& reason : std::exchange(accusations_, {})) judge_or_report(reason);
    answer();
  }

  void send_whereabouts() {
    const Whereabouts where{
        calls_.load(std::memory_order_relaxed), is_inside_.load(std::memory_order_relaxed),
        beats_.load(std::memory_order_relaxed), waits_for_.load(std::memory_order_relaxed)};
    const Bytes bytes = to_bytes(where);
    for (std::size_t r = 0; r < peers_.size(); ++r) tell(r, Tell::kWhereabouts, bytes);
  }

  // A thread that was itself late (a stopped process, a machine that slept) has no right to accuse others.
  void check_silence(Clock::duration late) {
    for (std::size_t r = 0; r < peers_.size(); ++r) {
      if (peers_[r].state != State::kHere) continue;
      if (late > interval_) peers_[r].heard += late;
      if (now() - peers_[r].heard <= silence_) continue;
      lose(r, fmt::format("nothing was heard of it for {} ms", silence_.count()));
    }
  }

  void flush_all() {
    for (std::size_t r = 0; r < peers_.size(); ++r) {
      if (peers_[r].state != State::kHere) continue;
      try {
        peers_[r].connection.flush();
      } catch (const Error& error) {
        read_from(r, false);  // its goodbye may have come before
        lose(r, error.what());
      }
    }
  }

  bool has_unsent() const {
    return std::ranges::any_of(
        peers_, [](const Peer& peer) { return peer.state == State::kHere && peer.connection.has_unsent(); });
  }

  void wait_and_read(std::unique_lock<std::mutex>& lock, Clock::time_point until) {
    std::vector<pollfd> polled{{service_wake_.get(), POLLIN, 0}};
    std::vector<std::pair<std::size_t, bool>> meanings{{0, false}};  // rank, and whether it is the pidfd
    for (std::size_t r = 0; r < peers_.size(); ++r) {
      if (peers_[r].state != State::kHere) continue;
      const short events = peers_[r].connection.has_unsent() ? POLLIN | POLLOUT : POLLIN;
      polled.push_back({peers_[r].connection.fd(), events, 0});
      meanings.emplace_back(r, false);
      if (!peers_[r].process_ended) continue;
      polled.push_back({peers_[r].process_ended.get(), POLLIN, 0});
      meanings.emplace_back(r, true);
    }
    lock.unlock();
    wait_for(polled, until);
    lock.lock();
    if (polled.front().revents != 0) drain(service_wake_.get());
    for (std::size_t i = 1; i < polled.size(); ++i) {
      if (polled[i].revents != 0) read_from(meanings[i].first, meanings[i].second);
    }
  }

  void read_from(std::size_t rank, bool process_ended) {
    Peer& peer = peers_[rank];
    try {
      while (peer.state == State::kHere) {
        const std::optional<Message> message = peer.connection.try_receive();
        if (!message) break;
        take(rank, *message);
      }
    } catch (const Error& error) {
      lose(rank, error.what());
    }
    if (process_ended) lose(rank, "its process has ended");
  }

  Epoch& epoch_;
  const milliseconds silence_;
  const milliseconds interval_;
  const int caller_wake_;
  const Fd service_wake_;

  // Where this worker is. Relaxed but for what enter() says: others read them now and then.
  std::atomic<std::uint64_t> calls_ = 0;
  std::atomic<bool> is_inside_ = false;
  std::atomic<std::uint64_t> beats_ = 0;
  std::atomic<int> waits_for_ = -1;
  std::array<std::atomic<std::uint64_t>, kHistory> history_{};  // words of the last calls
  std::atomic<bool> is_asked_ = false;  // a statement of a call waits that this worker has not entered

  mutable std::mutex mutex_;  // of all that follows; not held while the thread waits
  std::condition_variable changed_;
  std::vector<Peer> peers_;  // connections: the thread's alone
  std::vector<Outgoing> outbox_;
  std::vector<Verdict> accusations_;
  std::map<std::uint64_t, Statements> statements_;  // by call
  std::unordered_map<std::uint64_t, std::shared_ptr<const Words>> words_;
  std::uint64_t last_words_ = 0;
  std::uint64_t answered_call_ = UINT64_MAX;
  std::optional<Verdict> reported_;  // to a judge that has not answered
  std::size_t reported_to_ = 0;
  std::optional<Verdict> verdict_;
  bool is_closing_ = false;
  std::thread thread_;
};

Epoch::Epoch(int rank, std::vector<Connection> connections, EpochOptions options)
    : rank_(rank), names_(std::move(options.names)) {
  service_ = std::make_unique<Service>(*this, std::move(connections), options);
}

Epoch::~Epoch() { close(); }

std::string Epoch::name_of(int rank) const {
  return fmt::format("worker {} ({})", rank, names_[static_cast<std::size_t>(rank)]);
}

std::uint64_t Epoch::add_words(std::shared_ptr<const Words> words) {
  return service_->add_words(std::move(words));
}
void Epoch::forget_words(std::uint64_t number) { service_->forget_words(number); }
std::uint64_t Epoch::enter(std::uint64_t words) noexcept { return service_->enter(words); }
void Epoch::leave() noexcept { service_->leave(); }
void Epoch::set_progress(std::uint64_t beats, int waits_for) noexcept {
  service_->set_progress(beats, waits_for);
}
std::vector<Statement> Epoch::exchange(const Statement& mine, Clock::time_point deadline) {
  return service_->exchange(mine, deadline);
}
std::optional<Statement> Epoch::ask(int rank, milliseconds patience) { return service_->ask(rank, patience); }
Sighting Epoch::sighting(int rank) const { return service_->sighting(rank); }
void Epoch::accuse(const Verdict& reason) { service_->accuse(reason); }
void Epoch::throw_verdict() { service_->throw_verdict(); }
void Epoch::close() noexcept { service_->close(); }

}  // namespace onesum::cluster
