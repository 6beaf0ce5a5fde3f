// Every algorithm over worker processes: the same bits as with all workers in one process.
#pragma once

#include <string>

namespace onesum::testing {

// `transport` as in ONESUM_TRANSPORT.
void expect_same_bits_as_embedded(int size, const std::string& transport);

}  // namespace onesum::testing
