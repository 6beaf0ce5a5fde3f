// All-reduces between worker processes, next to plain TCP streams of the same bytes in the same rounds.
//
// Run it as every worker of a job (onesum run, tools/measure_link). Rank 0 prints, for each size: the median
// time of an all-reduce, that of one stream and of two at a time in opposite directions, the ratio of the
// all-reduce to each, and the bytes that left rank 0's machine through its network devices in one all-reduce.
//   onesum_link_bench SIZES ROUNDS SPEC [HOST:PORT]
// SIZES as in 1M,16M; HOST:PORT is where rank 0 takes the stream from the first rank of the second half of
// the ranks; without it there are no streams.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <onesum/onesum.h>

#include "base/config.h"
#include "base/fd.h"
#include "base/host_port.h"

namespace {

using namespace onesum;
using Seconds = std::chrono::duration<double>;

void require(bool holds, const char* what) {
  if (!holds) throw std::runtime_error(what);
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

// Of all network devices but the loopback one.
std::uint64_t bytes_sent_by_this_machine() {
  std::ifstream file("/proc/self/net/dev");
  std::string line;
  std::uint64_t sum = 0;
  while (std::getline(file, line)) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos || line.substr(0, colon).ends_with(" lo")) continue;
    unsigned long long sent = 0;
    if (std::sscanf(line.c_str() + colon + 1, "%*u %*u %*u %*u %*u %*u %*u %*u %llu", &sent) == 1)
      sum += sent;
  }
  return sum;
}

sockaddr_in address_of(const HostPort& place) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(place.port);
  require(::inet_pton(AF_INET, place.host.c_str(), &address.sin_addr) == 1, "expected an IPv4 address");
  return address;
}

// Rank 0's end, which receives.
Fd accept_at(const HostPort& place) {
  const sockaddr_in address = address_of(place);
  const Fd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int yes = 1;
  ::setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  require(::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
              ::listen(listener.get(), 1) == 0,
          "rank 0 cannot listen for the stream");
  return Fd(::accept(listener.get(), nullptr, nullptr));
}

Fd connect_to(const HostPort& place) {
  const sockaddr_in address = address_of(place);
  for (int attempt = 0; attempt < 1000; ++attempt) {
    Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0)
      return socket;
    ::usleep(10000);
  }
  throw std::runtime_error("nobody takes the stream");
}

void send_all(const Fd& socket, const std::vector<char>& bytes) {
  for (std::size_t sent = 0; sent < bytes.size();) {
    const ssize_t count = ::send(socket.get(), bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    require(count > 0, "the stream broke");
    sent += static_cast<std::size_t>(count);
  }
}

void receive_all(const Fd& socket, std::vector<char>& bytes) {
  for (std::size_t received = 0; received < bytes.size();) {
    const ssize_t count = ::recv(socket.get(), bytes.data() + received, bytes.size() - received, 0);
    require(count > 0, "the stream broke");
    received += static_cast<std::size_t>(count);
  }
}

// One worker of the job.
class Bench {
 public:
  Bench(const std::string& spec, const std::string& stream)
      : cluster_(Cluster::from_environment()), ops_(names(), 1, AllReduceSpecs(spec), 0, 0, 10, cluster_) {
    if (stream.empty()) return;
    const auto place = parse_host_port(stream);
    require(place.has_value(), "expected HOST:PORT of the stream");
    if (cluster_.rank() == 0) stream_ = accept_at(*place);
    if (cluster_.rank() == cluster_.size() / 2) stream_ = connect_to(*place);
  }

  void measure(std::size_t bytes, int rounds) {
    std::vector<PerReplica> values{PerReplica({tensor(bytes)})};
    std::vector<PerReplica> results{PerReplica({tensor(bytes)})};
    PreparedReduce call = ops_.prepare(ReduceOp::kSum, values, results);
    std::vector<double> reduces;
    std::vector<double> streams;
    std::vector<double> both_ways;
    std::vector<double> sent;
    for (int round = -1; round < rounds; ++round) {
      cluster_.barrier();
      const double stream = time_of([&] { pass_stream(bytes); });
      cluster_.barrier();
      const double both = time_of([&] { pass_both_ways(bytes); });
      cluster_.barrier();
      const std::uint64_t before = bytes_sent_by_this_machine();
      const double reduce = time_of([&] { call.run(); });
      if (round < 0) continue;  // fresh memory, connections that are not warm
      reduces.push_back(reduce);
      streams.push_back(stream);
      both_ways.push_back(both);
      sent.push_back(static_cast<double>(bytes_sent_by_this_machine() - before));
    }
    if (cluster_.rank() == 0)
      print(bytes, {median(reduces), median(streams), median(both_ways), median(sent)});
  }

 private:
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const Device& worker : cluster_.workers()) names.push_back(worker.to_string());
    return names;
  }

  Tensor tensor(std::size_t bytes) const {
    const auto elements = static_cast<std::int64_t>(bytes / sizeof(float));
    Tensor tensor = Tensor::empty(DType::kFloat32, {elements}, "CPU:0");
    std::ranges::fill(tensor.data<float>(), 1.0F);
    return tensor;
  }

  template <class Function>
  static double time_of(const Function& function) {
    const auto begin = std::chrono::steady_clock::now();
    function();
    return Seconds(std::chrono::steady_clock::now() - begin).count();
  }

  // To rank 0.
  void pass_stream(std::size_t bytes) {
    if (!stream_) return;
    buffer_.resize(bytes);
    cluster_.rank() == 0 ? receive_all(stream_, buffer_) : send_all(stream_, buffer_);
  }

  void pass_both_ways(std::size_t bytes) {
    if (!stream_) return;
    const std::vector<char> outgoing(bytes);
    buffer_.resize(bytes);
    const std::jthread sender([&] { send_all(stream_, outgoing); });
    receive_all(stream_, buffer_);
  }

  struct Medians {
    double reduce;
    double stream;
    double both_ways;
    double sent;
  };

  void print(std::size_t bytes, const Medians& medians) const {
    std::printf("%9zu bytes: all-reduce %8.3f ms", bytes, medians.reduce * 1e3);
    if (stream_) {
      std::printf(", one stream %8.3f ms (ratio %.2f), both ways %8.3f ms (ratio %.2f)", medians.stream * 1e3,
                  medians.reduce / medians.stream, medians.both_ways * 1e3,
                  medians.reduce / medians.both_ways);
    }
    std::printf(", sent %.2f of %.2f MB\n", medians.sent / 1e6, static_cast<double>(bytes) / 1e6);
    std::fflush(stdout);
  }

  Cluster cluster_;
  MultiWorkerAllReduce ops_;
  Fd stream_;
  std::vector<char> buffer_;
};

int run(const std::vector<std::string>& arguments) {
  require(arguments.size() == 3 || arguments.size() == 4,
          "usage: onesum_link_bench SIZES ROUNDS SPEC [HOST:PORT]");
  const int rounds = std::stoi(arguments[1]);
  require(rounds > 0, "ROUNDS: expected at least 1");
  Bench bench(arguments[2], arguments.size() == 4 ? arguments[3] : "");
  const std::string& sizes = arguments[0];
  for (std::size_t begin = 0; begin < sizes.size();) {
    const std::size_t end = std::min(sizes.find(',', begin), sizes.size());
    const auto bytes = parse_bytes(std::string_view(sizes).substr(begin, end - begin));
    require(bytes.has_value() && *bytes >= sizeof(float), "SIZES: expected bytes such as 64k,1M");
    bench.measure(*bytes, rounds);
    begin = end + 1;
  }
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  try {
    return run({arguments + 1, arguments + count});
  } catch (const std::exception& error) {
    std::fprintf(stderr, "onesum_link_bench: %s\n", error.what());
    return 1;
  }
}
