# tools/soak lets worker processes die for minutes (make soak); make test does so for some seconds.
file(GLOB soak_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tools/soak/*.cc")
add_executable(onesum_soak ${soak_sources})
target_link_libraries(onesum_soak PRIVATE onesum_build onesum::onesum Threads::Threads)
add_test(NAME soak/some_seconds COMMAND onesum_soak --seconds 20)
set_tests_properties(soak/some_seconds PROPERTIES LABELS full TIMEOUT 120
  ENVIRONMENT "XDG_CACHE_HOME=${PROJECT_BINARY_DIR}/empty-cache")
