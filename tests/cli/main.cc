// As GoogleTest's own main, and for workers that this program has started from itself.
#include <string_view>

#include <gmock/gmock.h>

#include "cli/calling_worker.h"

int main(int argc, char** argv) {
  ::testing::InitGoogleMock(&argc, argv);
  if (argc == 2 && std::string_view(argv[1]) == onesum::cli::kCallingWorker) onesum::cli::call_for_ever();
  return RUN_ALL_TESTS();
}
