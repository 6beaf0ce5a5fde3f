# The command line tool: <build>/onesum. All of src/cli but main.cc is the library onesum_cli, which
# tests/cli links too.
file(GLOB cli_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/cli/*.cc")
set(cli_main "${PROJECT_SOURCE_DIR}/src/cli/main.cc")
list(REMOVE_ITEM cli_sources "${cli_main}")

find_package(CLI11 REQUIRED)
find_package(nlohmann_json REQUIRED)

if(cli_sources)
  add_library(onesum_cli STATIC ${cli_sources})
  if(ONESUM_WITH_UCX)
    target_compile_definitions(onesum_cli PRIVATE ONESUM_WITH_UCX)
  endif()
  target_link_libraries(onesum_cli PUBLIC onesum_internals CLI11::CLI11 nlohmann_json::nlohmann_json
    spdlog::spdlog hwy::hwy)
  target_precompile_headers(onesum_cli REUSE_FROM onesum_read_once)
endif()

if(EXISTS "${cli_main}")
  add_executable(onesum_tool "${cli_main}")
  target_link_libraries(onesum_tool PRIVATE onesum_internals CLI11::CLI11 nlohmann_json::nlohmann_json)
  if(TARGET onesum_cli)
    target_link_libraries(onesum_tool PRIVATE onesum_cli)
  endif()
  set_target_properties(onesum_tool PROPERTIES
    OUTPUT_NAME onesum RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}")
else()
  message(STATUS "onesum: no src/cli/main.cc yet, so no tool")
endif()
