// As GoogleTest's own main, and for workers that this program has started from itself.
#include <string_view>

#include <gmock/gmock.h>

#include "cluster/launched_worker.h"

int main(int argc, char** argv) {
  ::testing::InitGoogleMock(&argc, argv);
  if (argc == 3 && std::string_view(argv[1]) == "--launched-worker")
    return onesum::cluster::run_launched_worker(argv[2]);
  return RUN_ALL_TESTS();
}
