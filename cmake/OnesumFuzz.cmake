# fuzz/<name>_fuzz.cc becomes <build>/<name>_fuzz, a libFuzzer program. The library itself is built with
# coverage by ONESUM_SANITIZE (see the preset "fuzz").
if(NOT CMAKE_CXX_COMPILER_ID MATCHES Clang)
  message(FATAL_ERROR "ONESUM_BUILD_FUZZ needs clang: use the preset \"fuzz\"")
endif()
file(GLOB fuzz_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/fuzz/*_fuzz.cc")
foreach(source IN LISTS fuzz_sources)
  cmake_path(GET source STEM name)
  add_executable(${name} "${source}")
  target_link_libraries(${name} PRIVATE onesum_internals)
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}")
endforeach()
