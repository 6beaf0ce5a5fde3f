// The workers that measure together. Each makes the same calls as the others, so whatever decides about calls
// (how many fit into a budget, whether to go on) must be the same number everywhere: it is exchanged here,
// with the library's own calls.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <onesum/cluster.h>

namespace onesum {
class CrossDeviceOps;
}

namespace onesum::cli {

// Thrown by all but rank 0 where the workers fail alike: what is wrong is said once.
struct FirstTells {};

class Lockstep {
 public:
  Lockstep();                                 // this process alone: nobody is asked
  explicit Lockstep(const Cluster& cluster);  // its workers; all call the same functions in the same order
  ~Lockstep();
  Lockstep(const Lockstep&) = delete;
  Lockstep& operator=(const Lockstep&) = delete;

  std::size_t rank() const noexcept { return rank_; }
  std::size_t size() const noexcept { return size_; }
  bool is_first() const noexcept { return rank_ == 0; }  // the one that prints

  // Returns when all have called it.
  void barrier();

  // What each worker gave, by rank; all give equally many.
  std::vector<std::vector<double>> gather(std::span<const double> own);
  // Of what the workers gave, element by element.
  std::vector<double> largest(std::span<const double> own);
  double largest(double own);
  // What rank 0 gave.
  double of_first(double own);
  // The text of the lowest rank that gave one; at most 512 bytes of it.
  std::string first_text(const std::string& own);

 private:
  std::size_t rank_ = 0;
  std::size_t size_ = 1;
  std::unique_ptr<CrossDeviceOps> ops_;  // absent: alone
};

}  // namespace onesum::cli
