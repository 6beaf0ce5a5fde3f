// Where the ranks of one communicator meet: a thread of the process that made the unique id. It collects what
// the ranks bring to a collective, whether they live in this process or another, checks that all do the same,
// and hands out the results. When a rank's connection ends without a bye, it tells the others.
#pragma once

#include <string>

namespace onesum::emulated {

// The name under which ranks find it; "" where the system has no sockets. It ends by itself when all are
// gone.
std::string open_meeting();

}  // namespace onesum::emulated
