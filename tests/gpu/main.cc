// As GoogleTest's own main, and for processes that this program has started from itself.
#include <string_view>
#include <vector>

#include <gmock/gmock.h>

#include "gpu/nccl_peer.h"

int main(int argc, char** argv) {
  ::testing::InitGoogleMock(&argc, argv);
  if (argc >= 2 && argv[1] == onesum::testing::kNcclPeer) {
    return onesum::testing::run_nccl_peer(std::vector<std::string_view>(argv + 2, argv + argc));
  }
  return RUN_ALL_TESTS();
}
