// A plan bound to sizes, types and kernels: what one process executes, for the ranks that live in it.
//
// A Program is flat and immutable; it knows tensors by slot, not by address. It consists of rounds, each of
// which runs the whole plan on a part of the data (exec/rounds.h), and of which several may be under way at a
// time: what one waits for, another works for. A run needs an Instance, which holds the
// addresses: for a call on new tensors it is filled in one sweep, a prepared call fills it once. Between bind
// and the end of the run nothing is allocated.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/hash.h"
#include "base/modulus.h"
#include "engine/device.h"
#include "engine/native.h"
#include "engine/transport.h"
#include "exec/mail.h"
#include "plan/plan.h"

namespace onesum::exec {

// One operand of a piece: where its bytes begin, relative to a slot's base address.
struct PointerSource {
  std::uint32_t slot = 0;
  std::size_t byte_offset = 0;
};

// A run of elements that are contiguous in every operand. Its pointers are destinations, then sources.
struct Piece {
  std::uint32_t first_pointer = 0;
  std::size_t first = 0;  // element, counted from the pointers
  std::size_t count = 0;
};

// What one thread claims at a time.
struct Segment {
  std::uint32_t first_piece = 0;
  std::uint32_t num_pieces = 0;
};

// Rows that are not contiguous in some operand: `rows` copies of one row's bytes, every pointer advancing by
// a stride of its own.
struct RowCopy {
  std::uint32_t first_pointer = 0;
  std::uint32_t first_stride = 0;  // in Program::strides, one per pointer
  std::size_t first_row = 0;
  std::size_t rows = 0;
  std::size_t elements = 0;  // of a row
};

// One source of a step whose sources differ in type: how it becomes the accumulator's.
struct Widening {
  engine::ReduceForm form;
  engine::Kernel kernel = nullptr;  // null: it is of that type
  std::size_t element_bytes = 0;    // in memory
};

// A step that mixes types has at most this many operands.
inline constexpr std::size_t kMaxMixedOperands = 256;

// What the segments of a step are.
enum class SegmentKind : std::uint8_t {
  kPieces,  // Program::segments
  kMixed,   // Program::segments, sources go through Program::widenings
  kRows,    // Program::row_copies
};

// Of a payload that lies in tensors: its address is Program::pointers[pointer].
struct BoundStretch {
  std::uint32_t pointer = 0;
  std::size_t bytes = 0;
};
inline constexpr std::size_t kMostStretches = 8;

// A message that is received straight into tensors, as soon as a lane of the round has done so many steps.
struct Landing {
  std::uint32_t posting = 0;
  std::uint32_t lane = 0;
  std::uint32_t steps = 0;
  bool after_sends = false;  // and what was sent from tensors in the round is taken
};

// Who does the work of a step: 0 is the host, i the engine i - 1 of Program::queued.
using Unit = std::uint16_t;
inline constexpr Unit kHost = 0;

struct BoundStep {
  plan::Op op = plan::Op::kCopy;
  SegmentKind kind = SegmentKind::kPieces;
  Unit unit =
      kHost;  // kRecv, kWait: that of the lane's next work, which has to come after what they wait for
  std::uint32_t destinations = 0;
  engine::ReduceForm form;  // its merges point into Program::merges
  engine::Kernel kernel = nullptr;
  std::uint32_t first_segment = 0;  // in segments, or row_copies
  std::uint32_t num_segments = 0;
  std::uint32_t first_widening = 0;  // kMixed: one per source, in widenings, or of queued units in is_wide
  std::uint32_t first_merge = 0;     // in Program::merges, one per source
  std::uint32_t num_sources = 0;
  std::uint32_t first_send = 0;  // in Program::sends
  std::uint32_t num_sends = 0;
  std::uint32_t posting = 0;       // kRecv: in Program::postings
  std::uint32_t pack = 0;          // kCall, as are these:
  std::int32_t device = 0;         // in the plan
  std::uint32_t first_source = 0;  // in Program::pointers
  std::uint32_t result_slot = 0;   // whose address the call gives
  std::uint32_t wait_lane = 0;     // kWait: in the round, until so many of its steps are done
  std::uint32_t wait_steps = 0;
  std::uint32_t native = 0;      // kNative: in Program::natives
  bool overwrites_lent = false;  // not before what was sent from tensors in the round is taken
};

// A native collective over the devices of a communicator.
struct BoundNative {
  std::uint32_t communicator = 0;  // in Program::communicators
  bool spans_processes = false;
  engine::NativeCollective collective = engine::NativeCollective::kAllReduce;
  Element element = Element::kFloat32;
  int root = -1;
  std::uint32_t first_count = 0;  // in Program::native_counts, one per piece
  std::uint32_t num_counts = 0;
  std::uint32_t first_share = 0;  // in Program::native_shares, by piece, then by device of the communicator
};

// Of a device's share of a piece: its operands in Program::pointers; -1: none.
struct BoundShare {
  std::int32_t destination = -1;
  std::int32_t source = -1;
};

struct BoundLane {
  std::uint32_t first_step = 0;
  std::uint32_t num_steps = 0;
  std::int32_t plan_lane = 0;
};

struct BoundRound {
  std::uint32_t first_lane = 0;
  std::uint32_t num_lanes = 0;
  std::uint32_t first_posting = 0;
  std::uint32_t num_postings = 0;
  std::uint32_t first_incoming = 0;
  std::uint32_t num_incoming = 0;
  std::uint32_t first_landing = 0;
  std::uint32_t num_landings = 0;
};

// The boxes that two ranks have between them: outbox and inbox of every kind.
inline constexpr std::size_t kBoxesOfPair = 2 * engine::kBoxes;

// Where outboxes have room for several rounds, these take turns in it: the first so many rounds that use a
// copy begin at its start, the next ones after as many bytes, and so on.
struct Turns {
  unsigned count = 1;
  std::size_t bytes = 0;
};

// Whose memory a slot is that the library allocates.
struct Memory {
  std::size_t bytes = 0;  // 0: the address comes from a call, or there is nothing to store
  Unit unit = kHost;
  bool is_staging = false;  // of the host, and all units work in it
};

// The slots whose memory is not a tensor's, in this order: for each round of those that may be under way,
// temporaries, one for all its local messages, and for each of its lanes one for staging, if there are queued
// units; and the boxes: for each beat of a cycle, counted from the program's first round, for each peer.
struct Program {
  engine::ThreadedEngine* host = nullptr;
  std::vector<engine::QueuedEngine*> queued;
  std::vector<BoundRound> rounds;
  std::vector<BoundLane> lanes;
  std::vector<BoundStep> steps;
  std::vector<Segment> segments;
  std::vector<Piece> pieces;
  std::vector<RowCopy> row_copies;
  std::vector<std::size_t> strides;  // bytes
  std::vector<Widening> widenings;
  std::vector<std::uint8_t> is_wide;
  std::vector<PointerSource> pointers;
  std::vector<std::uint8_t> merges;
  std::vector<Posting> postings;
  std::vector<std::uint32_t> sends;     // the postings that steps send
  std::vector<engine::Place> incoming;  // of other processes
  std::vector<BoundStretch> stretches;
  std::vector<Landing> landings;
  std::vector<BoundNative> natives;
  std::vector<std::size_t> native_counts;
  std::vector<BoundShare> native_shares;
  std::vector<std::shared_ptr<engine::Communicator>> communicators;
  std::vector<int> native_ranks;  // that join each other in native collectives, if this one is among them
  std::size_t tensor_slots = 0;
  std::vector<Memory> memory;  // of the slots of one round
  std::vector<int> peers;
  unsigned phases = 1;
  Turns turns;
  Modulus window{1};  // rounds under way at a time, at most
  // Of all messages of all rounds, those between other ranks included: ranks whose programs fit together have
  // the same.
  Fingerprint skeleton;

  std::size_t first_box() const { return tensor_slots + window.divisor() * memory.size(); }
  const Memory& memory_of(std::size_t slot) const { return memory[(slot - tensor_slots) % memory.size()]; }
  // Beats after which a round has the same boxes again.
  unsigned cycle() const { return phases * turns.count; }
  // Where in the room of a copy the messages of a beat begin, which has this place in a cycle.
  std::size_t shift(std::size_t place) const {
    return turns.count == 1 ? 0 : place % cycle() / phases * turns.bytes;
  }
  std::size_t slots() const { return first_box() + kBoxesOfPair * cycle() * peers.size(); }
};

// A stream of the caller's, on the device of a unit.
struct CallerStream {
  Unit unit = kHost;
  void* stream = nullptr;
  friend bool operator==(const CallerStream&, const CallerStream&) = default;
};

class Fronts;

// The addresses of one run, the memory of its temporaries and local messages, and how far it got.
class Instance {
 public:
  // `transport`: needed by programs with peers, and outlives the instance.
  explicit Instance(std::shared_ptr<const Program> program, engine::Transport* transport = nullptr);
  ~Instance();
  Instance(const Instance&) = delete;
  Instance& operator=(const Instance&) = delete;

  const Program& program() const noexcept { return *program_; }

  // Base addresses by tensor slot; set all of them, then say so.
  std::vector<std::byte*>& bases() noexcept { return bases_; }
  void bases_changed() noexcept { std::fill(is_resolved_.begin(), is_resolved_.end(), false); }

  // Of programs with queued units: a run comes after what these streams were given before, and what they are
  // given after it comes after the run. If `may_return_early`, and nothing but queues has work to do, a run
  // ends when all is given to them.
  void set_callers(std::span<const CallerStream> streams, bool may_return_early);

 private:
  friend class Executor;

  // How far a round is that is under way.
  struct Open {
    const BoundRound* round = nullptr;
    std::size_t number = 0;  // among those under way
    engine::Beat beat;
    std::vector<std::uint32_t> done;   // steps of each lane
    std::vector<std::uint32_t> sent;   // local messages, by posting: 1 + the lane that sent it; 0: not yet.
                                       // Messages that are received into tensors: 1 from receive_into() on
    std::uint32_t landings = 0;        // of these, how many are not so far
    std::vector<std::uint8_t> given;   // of each lane: its native step, which the library has not taken yet
    std::vector<std::uint32_t> lanes;  // those that are not at their end come first,
    std::size_t waiting = 0;           // and are so many
  };

  void allocate_memory();
  void release_memory() noexcept;
  // After an error: what devices still do must not outlive the call. Collectives that would not come to an
  // end are aborted; if something else does not, the memory is never given back.
  void give_up() noexcept;
  void find_boxes(engine::Transport& transport);
  // The place of a beat in the cycle. Runs follow each other closely, which spares a division.
  unsigned place_of(std::uint64_t beat) noexcept;
  // As Program::pointers, for a run that begins with a beat of this place.
  std::byte* const* pointers(unsigned place) noexcept {
    if (!is_resolved_[place]) resolve(place);
    return pointers_.data() + place * program_->pointers.size();
  }
  void resolve(unsigned place) noexcept;

  std::shared_ptr<const Program> program_;
  std::vector<std::byte*> bases_;     // by slot, boxes as if the first round's beat were 0
  std::vector<std::byte*> pointers_;  // for every beat of a cycle that the first round can have,
  std::vector<bool> is_resolved_;     // once asked for
  std::uint64_t last_beat_ = 0;       // that place_of() was asked for
  unsigned last_place_ = 0;
  std::vector<Open> open_;                   // by round modulo window
  std::unique_ptr<Fronts> fronts_;           // of programs with queued units
  std::vector<engine::NativeShare> shares_;  // room for those of one native step
  bool is_lost_ = false;                     // a device may use its memory for ever
};

}  // namespace onesum::exec
