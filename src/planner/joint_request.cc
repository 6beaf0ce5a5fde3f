#include "planner/joint_request.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include <onesum/error.h>

#include "base/bytes.h"
#include "base/combine.h"
#include "base/text.h"

namespace onesum::planner {
namespace {

// What a batch can have; a call with more is none.
constexpr std::uint32_t kMostPairs = 1U << 24;
constexpr std::uint32_t kMostComponents = 1U << 20;
constexpr std::uint32_t kMostAxes = 64;

class Writer {
 public:
  void request(const Request& request) {
    enumeration(request.kind);
    enumeration(request.op);
    out_.number(static_cast<std::uint32_t>(request.axis));
    out_.number(static_cast<std::uint32_t>(request.root));
    flag(request.has_equal_parts);
    flag(request.into);
    out_.number<std::uint64_t>(request.options.bytes_per_pack);
    enumeration(request.options.implementation);
    enumeration(request.options.numerics);
    enumeration(request.options.sparse_rows);
    out_.text(request.policy);
    count(request.pairs.size());
    for (const PairInfo& pair : request.pairs) this->pair(pair);
  }

  std::vector<std::byte> take() { return out_.take(); }

 private:
  void pair(const PairInfo& pair) {
    components(pair.replicas);
    count(pair.destinations.size());
    for (const Device& device : pair.destinations) out_.text(device.to_string());
    flag(pair.destination_is_text);
    components(pair.results);
    count(pair.splits.size());
    for (const std::vector<std::size_t>& split : pair.splits) {
      count(split.size());
      for (const std::size_t elements : split) out_.number<std::uint64_t>(elements);
    }
  }

  void components(const std::vector<ComponentInfo>& components) {
    count(components.size());
    for (const ComponentInfo& component : components) {
      tensor(component.tensor);
      flag(component.indices.has_value());
      if (component.indices) tensor(*component.indices);
      flag(component.dense_shape.has_value());
      if (component.dense_shape) shape(*component.dense_shape);
    }
  }

  void tensor(const TensorInfo& tensor) {
    enumeration(tensor.dtype);
    shape(tensor.shape);
    out_.text(tensor.device.to_string());
  }

  void shape(const Shape& shape) {
    count(shape.rank());
    for (const std::int64_t extent : shape.extents()) out_.number(static_cast<std::uint64_t>(extent));
  }

  void count(std::size_t number) { out_.number(static_cast<std::uint32_t>(number)); }
  void flag(bool value) { out_.number<std::uint8_t>(value ? 1 : 0); }
  template <class Enum>
  void enumeration(Enum value) {
    out_.number(static_cast<std::uint8_t>(value));
  }

  ByteWriter out_;
};

class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : in_(bytes) {}

  Request request() {
    Request request;
    request.kind = enumeration(CallKind::kAllToAll);
    request.op = enumeration(kLastReduceOp);
    request.axis = static_cast<int>(in_.number<std::uint32_t>());
    request.root = static_cast<int>(in_.number<std::uint32_t>());
    request.has_equal_parts = flag();
    request.into = flag();
    request.options.bytes_per_pack = in_.number<std::uint64_t>();
    request.options.implementation = enumeration(Implementation::kNccl);
    request.options.numerics = enumeration(Numerics::kExact);
    request.options.sparse_rows = enumeration(SparseRows::kMergeDuplicates);
    request.policy = in_.text();
    for (std::uint32_t left = count(kMostPairs); left > 0; --left) request.pairs.push_back(pair());
    in_.expect_end();
    return request;
  }

 private:
  PairInfo pair() {
    PairInfo pair;
    pair.replicas = components();
    for (std::uint32_t left = count(kMostComponents); left > 0; --left)
      pair.destinations.emplace_back(in_.text());
    pair.destination_is_text = flag();
    pair.results = components();
    for (std::uint32_t left = count(kMostComponents); left > 0; --left) {
      std::vector<std::size_t>& split = pair.splits.emplace_back();
      for (std::uint32_t parts = count(kMostComponents); parts > 0; --parts)
        split.push_back(in_.number<std::uint64_t>());
    }
    return pair;
  }

  std::vector<ComponentInfo> components() {
    std::vector<ComponentInfo> components;
    for (std::uint32_t left = count(kMostComponents); left > 0; --left) {
      ComponentInfo component;
      component.tensor = tensor();
      if (flag()) component.indices = tensor();
      if (flag()) component.dense_shape = shape();
      components.push_back(std::move(component));
    }
    return components;
  }

  TensorInfo tensor() {
    TensorInfo tensor;
    tensor.dtype = enumeration(DType::kComplex128);
    tensor.shape = shape();
    tensor.device = Device(in_.text());
    return tensor;
  }

  Shape shape() {
    std::vector<std::int64_t> extents;
    for (std::uint32_t left = count(kMostAxes); left > 0; --left) {
      extents.push_back(static_cast<std::int64_t>(in_.number<std::uint64_t>()));
    }
    return Shape(std::span<const std::int64_t>(extents));
  }

  [[noreturn]] static void refuse(const std::string& what) {
    throw Error(ErrorCode::kInvalidArgument, "another worker's request " + what);
  }
  std::uint32_t count(std::uint32_t most) {
    const auto number = in_.number<std::uint32_t>();
    if (number > most) refuse(fmt::format("names {} things where {} are the most", number, most));
    return number;
  }
  bool flag() { return enumeration(static_cast<std::uint8_t>(1)) == 1; }
  template <class Enum>
  Enum enumeration(Enum last) {
    const auto number = in_.number<std::uint8_t>();
    if (number > static_cast<std::uint8_t>(last))
      refuse(fmt::format("has {} where {} is the last", number, static_cast<int>(last)));
    return static_cast<Enum>(number);
  }

  ByteReader in_;
};

std::string describe_options(const Request& request) {
  std::string text(request.into ? ", into results" : "");
  if (request.has_equal_parts) text += ", parts equally large";
  if (request.options.bytes_per_pack != 0)
    text += fmt::format(", bytes_per_pack {}", request.options.bytes_per_pack);
  if (request.options.implementation != Implementation::kAuto) {
    text += request.options.implementation == Implementation::kRing ? ", implementation ring"
                                                                    : ", implementation nccl";
  }
  if (request.options.numerics == Numerics::kFast) text += ", numerics fast";
  if (request.options.sparse_rows == SparseRows::kMergeDuplicates) text += ", merging duplicates";
  if (!request.policy.empty()) text += " by " + request.policy;
  return text;
}

std::string describe_pair(const PairInfo& pair) {
  if (pair.replicas.empty()) return "a value without replicas";
  const ComponentInfo& first = pair.replicas.front();
  return fmt::format("{}{} {} on {} device(s)", first.indices ? "sparse " : "", to_string(first.tensor.dtype),
                     first.tensor.shape.to_string(), pair.replicas.size());
}

// Whether the replicas of a worker count in a call.
bool brings(const Request& request, std::size_t rank) {
  return !has_root(request.kind) || rank == static_cast<std::size_t>(request.root);
}

// Puts the parts of all workers together.
class Joiner {
 public:
  Joiner(std::span<const Request> parts, std::span<const Device> workers)
      : parts_(parts), workers_(workers) {}

  Request join() {
    Request joint = parts_.front();
    for (std::size_t r = 1; r < parts_.size(); ++r) check_same_call(r);
    for (std::size_t p = 0; p < joint.pairs.size(); ++p) join_pair(p, joint.pairs[p]);
    return joint;
  }

 private:
  void check_same_call(std::size_t rank) const {
    const Request& first = parts_.front();
    const Request& other = parts_[rank];
    if (other.kind == first.kind && other.op == first.op && other.axis == first.axis &&
        other.root == first.root && other.has_equal_parts == first.has_equal_parts &&
        other.into == first.into && other.options.bytes_per_pack == first.options.bytes_per_pack &&
        other.options.implementation == first.options.implementation &&
        other.options.numerics == first.options.numerics &&
        other.options.sparse_rows == first.options.sparse_rows && other.policy == first.policy &&
        other.pairs.size() == first.pairs.size()) {
      return;
    }
    refuse(rank, describe(other), describe(first));
  }

  void join_pair(std::size_t p, PairInfo& joint) const {
    joint.splits.clear();
    joint.replicas.clear();
    joint.results.clear();
    joint.destinations.clear();
    for (std::size_t r = 0; r < parts_.size(); ++r) {
      const PairInfo& part = parts_[r].pairs[p];
      check_alike(r, p);
      if (brings(parts_.front(), r)) {
        append(part.replicas, joint.replicas);
        append_splits(part, joint);
      }
      append(part.results, joint.results);
      for (const Device& device : part.destinations) {
        // Results are the caller's memory, one for each destination; a device named twice is found later.
        const bool is_new = std::ranges::find(joint.destinations, device) == joint.destinations.end();
        if (is_new || parts_.front().into) {
          joint.destinations.push_back(device);
        }
      }
    }
  }

  static void append(const std::vector<ComponentInfo>& part, std::vector<ComponentInfo>& all) {
    all.insert(all.end(), part.begin(), part.end());
  }

  // Of each replica one; where a worker gave none, an empty one.
  static void append_splits(const PairInfo& part, PairInfo& joint) {
    joint.splits.insert(joint.splits.end(), part.splits.begin(), part.splits.end());
    joint.splits.resize(joint.replicas.size());
  }

  // What the rules of a single request do not find: they know nothing of workers.
  void check_alike(std::size_t rank, std::size_t p) const {
    const PairInfo& first = parts_.front().pairs[p];
    const PairInfo& other = parts_[rank].pairs[p];
    const std::string name = name_of_pair(parts_.front().kind, p);
    if (first.destination_is_text != other.destination_is_text ||
        (first.destination_is_text && first.destinations != other.destinations)) {
      refuse(rank, name + ": destination " + destination_of(other), destination_of(first));
    }
    if (first.replicas.empty() || other.replicas.empty()) return;
    const ComponentInfo& a = first.replicas.front();
    const ComponentInfo& b = other.replicas.front();
    // Dense and sparse components of one sum may meet; whatever is broadcast is one value.
    const bool must_be_of_one_kind = parts_.front().kind == CallKind::kBroadcast;
    const CallKind kind = parts_.front().kind;
    const bool may_differ_in_shape = a.indices || b.indices || kind == CallKind::kGather ||
                                     kind == CallKind::kAllGather || kind == CallKind::kAllToAll ||
                                     kind == CallKind::kScatter;
    if ((must_be_of_one_kind && a.indices.has_value() != b.indices.has_value()) ||
        a.tensor.dtype != b.tensor.dtype || (!may_differ_in_shape && a.tensor.shape != b.tensor.shape)) {
      refuse(rank, name + ": " + describe_pair(other), describe_pair(first));
    }
  }

  static std::string destination_of(const PairInfo& pair) {
    std::string text;
    for (const Device& device : pair.destinations)
      text.append(text.empty() ? "" : ", ").append(device.to_string());
    return text + (pair.destination_is_text ? " as text" : " of a value");
  }

  [[noreturn]] void refuse(std::size_t rank, const std::string& found, const std::string& expected) const {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("workers call differently: worker {} ({}) calls {}; worker 0 ({}) calls {}", rank,
                            workers_[rank].to_string(), found, workers_.front().to_string(), expected));
  }

  std::span<const Request> parts_;
  std::span<const Device> workers_;
};

}  // namespace

std::vector<std::byte> to_bytes(const Request& request) {
  Writer writer;
  writer.request(request);
  return writer.take();
}

Request request_from(std::span<const std::byte> bytes) { return Reader(bytes).request(); }

std::string describe(const Request& request) {
  std::string text(name_of(request.kind));
  if (is_reduction(request.kind)) {
    text += fmt::format(" ({})", onesum::name_of(request.op));
  }
  if (request.kind == CallKind::kGather) text += fmt::format(" along axis {}", request.axis);
  if (has_root(request.kind)) text += fmt::format(" from worker {}", request.root);
  text += request.pairs.size() == 1 ? " of " : fmt::format(" of {} values, the first ", request.pairs.size());
  return text + (request.pairs.empty() ? "none" : describe_pair(request.pairs.front())) +
         describe_options(request);
}

Request joined(std::span<const Request> by_rank, std::span<const Device> workers) {
  return Joiner(by_rank, workers).join();
}

std::vector<Request> said_alike(const Request& mine, std::size_t own, std::span<const Device> workers) {
  std::vector<Request> said(workers.size(), mine);
  for (std::size_t rank = 0; rank < said.size(); ++rank) {
    const auto move = [&](Device& device) {
      if (device.host() != workers[own].host()) return;
      device =
          Device(fmt::format("/device:{}:{}", *device.type(), *device.index())).merged_over(workers[rank]);
    };
    for (PairInfo& pair : said[rank].pairs) {
      for (ComponentInfo& replica : pair.replicas) move(replica.tensor.device);
      for (ComponentInfo& result : pair.results) move(result.tensor.device);
      if (pair.destination_is_text) continue;
      for (Device& device : pair.destinations) move(device);
    }
  }
  return said;
}

namespace {

// Where this worker's tensors are, for calls that have parts.
void set_memory(std::vector<ComponentInfo>& joint, std::size_t first,
                const std::vector<ComponentInfo>& mine) {
  for (std::size_t i = 0; i < mine.size(); ++i) joint[first + i].tensor.memory = mine[i].tensor.memory;
}

}  // namespace

void mark_in_place(Request& joint, std::span<const Request> by_rank, std::size_t own, const Request& mine) {
  if (!joint.into) return;
  for (std::size_t p = 0; p < joint.pairs.size(); ++p) {
    PairInfo& pair = joint.pairs[p];
    pair.in_place_of.assign(pair.destinations.size(), -1);
    std::size_t replicas = 0;
    std::size_t results = 0;
    for (std::size_t r = 0; r < own; ++r) {
      if (brings(joint, r)) replicas += by_rank[r].pairs[p].replicas.size();
      results += by_rank[r].pairs[p].results.size();
    }
    if (has_parts(joint.kind)) {
      if (brings(joint, own)) set_memory(pair.replicas, replicas, mine.pairs[p].replicas);
      set_memory(pair.results, results, mine.pairs[p].results);
      continue;
    }
    if (!brings(joint, own)) continue;
    const std::vector<std::int32_t>& in_place = mine.pairs[p].in_place_of;
    for (std::size_t d = 0; d < in_place.size(); ++d) {
      if (in_place[d] >= 0) pair.in_place_of[results + d] = in_place[d] + static_cast<std::int32_t>(replicas);
    }
  }
}

}  // namespace onesum::planner
