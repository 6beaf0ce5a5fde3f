# bench/*.cc, micro benchmarks with Google Benchmark: <build>/onesum_microbench.
file(GLOB bench_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/bench/*.cc")
if(bench_sources)
  find_package(benchmark REQUIRED)
  add_executable(onesum_microbench ${bench_sources})
  target_link_libraries(onesum_microbench PRIVATE onesum_internals hwy::hwy benchmark::benchmark
    benchmark::benchmark_main)
  set_target_properties(onesum_microbench PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}")
endif()

# Between worker processes: <build>/onesum_link_bench, which tools/measure_link runs.
add_executable(onesum_link_bench "${PROJECT_SOURCE_DIR}/bench/link/link_bench.cc")
target_link_libraries(onesum_link_bench PRIVATE onesum_internals)
set_target_properties(onesum_link_bench PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}")

# What tools/check_instructions runs under valgrind: <build>/onesum_instructions.
add_executable(onesum_instructions "${PROJECT_SOURCE_DIR}/bench/instructions/instructions.cc")
target_link_libraries(onesum_instructions PRIVATE onesum_build onesum::onesum)
target_compile_definitions(onesum_instructions PRIVATE ONESUM_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
set_target_properties(onesum_instructions PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}")
