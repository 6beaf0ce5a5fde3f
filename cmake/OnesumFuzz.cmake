# fuzz/<name>_fuzz.cc becomes <build>/<name>_fuzz, a libFuzzer program; target onesum_fuzz builds them all.
# They link the rooms that read text or messages, not the whole library, and these rooms only are built with coverage
# and sanitizers (ONESUM_SANITIZE of the preset "fuzz").
set(fuzzed_rooms onesum_room_base onesum_room_plan onesum_room_collective onesum_room_planner
  onesum_room_cluster onesum_room_engine onesum_room_engine_tcp onesum_room_engine_faulty)

if(NOT CMAKE_CXX_COMPILER_ID MATCHES Clang)
  message(FATAL_ERROR "ONESUM_BUILD_FUZZ needs clang: use the preset \"fuzz\"")
endif()
add_custom_target(onesum_fuzz)
file(GLOB fuzz_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/fuzz/*_fuzz.cc")
foreach(source IN LISTS fuzz_sources)
  cmake_path(GET source STEM name)
  add_executable(${name} "${source}")
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}/src")
  target_link_libraries(${name} PRIVATE ${fuzzed_rooms} onesum_build Threads::Threads fmt::fmt spdlog::spdlog
    OpenSSL::Crypto $<$<BOOL:${ISAL_FOUND}>:PkgConfig::ISAL> ${CMAKE_DL_LIBS})
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}")
  add_dependencies(onesum_fuzz ${name})
endforeach()
