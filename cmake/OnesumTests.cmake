# Every folder of tests/ that holds *_test.cc becomes one GoogleTest program per label:
#   tests/<folder>/*_full_test.cc         onesum_test_<folder>_full         label full
#   tests/<folder>/*_exhaustive_test.cc   onesum_test_<folder>_exhaustive   label exhaustive
#   tests/<folder>/*_test.cc (the rest)   onesum_test_<folder>              label fast
# Other *.cc of the folder are linked into each of its programs. Tests are named <folder>/<Suite>.<Name>,
# so `ctest -R '^plan/'` runs a folder. tests/support/ is a library that all of them link.
# tests/conformance/ has checks that are made on CPUs (tests/api/, tests/processes/) and on GPUs (tests/gpu/,
# tests/gpu_processes/), in a library of their own.
# Tests run in the project's root, and name its files from there. tests/cli/ links the tool's
# code and has the path of the tool itself as ONESUM_TOOL; tests/exec/ runs the sample plans of tests/plan/,
# tests/machines/ the workers and calls of tests/processes/; tests/engine/ runs the GPU's kernels compiled for
# the host, tests/emulated_gpu_self/ and tests/gpu/ the emulated GPU (OnesumEmulatedGpu.cmake).
# Targets: onesum_tests_fast builds what label fast needs, onesum_tests everything.

find_package(GTest REQUIRED)
# Tests do not depend on constants that the user measured (docs/configuration.md): this folder stays empty.
set(ONESUM_TEST_CACHE "${PROJECT_BINARY_DIR}/empty-cache")
set(ONESUM_TEST_PROPERTIES ENVIRONMENT "XDG_CACHE_HOME=${ONESUM_TEST_CACHE}")
if(ONESUM_SANITIZE MATCHES thread)  # which UCX's hooks of memory functions crash
  list(APPEND ONESUM_TEST_PROPERTIES ENVIRONMENT_MODIFICATION "UCX_MEM_EVENTS=set:n")
elseif(ONESUM_SANITIZE MATCHES address)
  list(APPEND ONESUM_TEST_PROPERTIES ENVIRONMENT_MODIFICATION
    "LSAN_OPTIONS=set:use_poisoned=1,print_suppressions=0,suppressions=${PROJECT_SOURCE_DIR}/cmake/lsan_suppressions.txt")
endif()
include(GoogleTest)
add_custom_target(onesum_tests)
add_custom_target(onesum_tests_fast)
add_dependencies(onesum_tests onesum_tests_fast)

add_library(onesum_test_flags INTERFACE)
target_link_libraries(onesum_test_flags INTERFACE
  onesum_internals hwy::hwy GTest::gmock GTest::gtest)
# Most of the time that a build takes is the tests': they are optimised less than the library, and the headers
# that all of them include are read once. Under sanitizers they are not optimised at all, and undefined
# behaviour is looked for in the library only.
target_compile_options(onesum_test_flags INTERFACE -fPIC)  # programs, too: they share what was read
if(ONESUM_SANITIZE)
  target_compile_options(onesum_test_flags INTERFACE -O0)
elseif(NOT CMAKE_BUILD_TYPE STREQUAL "Debug")
  # With less optimisation g++ 12 sees overlaps and overflows in sums of strings that are not there (GCC's bugs 105651
  # and 105329).
  target_compile_options(onesum_test_flags INTERFACE
    -O1 $<$<CXX_COMPILER_ID:GNU>:-Wno-array-bounds;-Wno-restrict;-Wno-stringop-overflow;-Wno-stringop-overread>)
endif()
if(ONESUM_SANITIZE MATCHES undefined)
  target_compile_options(onesum_test_flags INTERFACE -fno-sanitize=undefined)
endif()
target_include_directories(onesum_test_flags INTERFACE "${PROJECT_SOURCE_DIR}/tests")

file(GLOB support_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/support/*.cc")
list(FILTER support_sources EXCLUDE REGEX "_test\\.cc$")
if(support_sources)
  add_library(onesum_test_support STATIC ${support_sources})
  target_link_libraries(onesum_test_support PUBLIC onesum_test_flags)
  target_precompile_headers(onesum_test_support PRIVATE
    <gmock/gmock.h> <gtest/gtest.h> <algorithm> <functional> <map> <memory> <span> <string> <vector>)
endif()

file(GLOB conformance_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/conformance/*.cc")
add_library(onesum_test_conformance STATIC ${conformance_sources})
target_link_libraries(onesum_test_conformance PUBLIC onesum_test_support)
target_precompile_headers(onesum_test_conformance REUSE_FROM onesum_test_support)

# tests/gpu/ and tests/gpu_processes/ run twice: on emulated GPUs that work in each other's memory, and on such that
# do not.
function(onesum_gpu_tests name folder label timeout)
  add_dependencies(${name} onesum_cuda onesum_emulated_gpu)
  foreach(peers all none)
    gtest_discover_tests(${name}
      TEST_PREFIX "${folder}/peers_${peers}/" TEST_LIST ${name}_${peers} DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60
      WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}"
      PROPERTIES LABELS ${label} TIMEOUT ${timeout})
    # A list, which gtest_discover_tests cannot pass on.
    set(environment "XDG_CACHE_HOME=${ONESUM_TEST_CACHE}" "ONESUM_CUDA_PLUGIN=$<TARGET_FILE:onesum_cuda>"
      "LD_LIBRARY_PATH=${PROJECT_BINARY_DIR}/emulated_gpu" EMULATED_GPU_DEVICES=8 "EMULATED_GPU_PEERS=${peers}"
      EMULATED_GPU_DELAY_US=20 ONESUM_POOL_BYTES=0)
    set(script "${PROJECT_BINARY_DIR}/${name}_${peers}_environment.cmake")
    file(GENERATE OUTPUT "${script}" CONTENT "if(${name}_${peers})
  set_tests_properties(\${${name}_${peers}} PROPERTIES ENVIRONMENT \"${environment}\")
endif()
")
    set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES "${script}")
  endforeach()
endfunction()

function(onesum_test_program folder label timeout)
  set(sources ${ARGN})
  string(REPLACE "/" "_" name "onesum_test_${folder}")
  if(NOT label STREQUAL "fast")
    string(APPEND name "_${label}")
  endif()
  add_executable(${name} ${sources})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests")
  if(TARGET onesum_test_support)
    target_link_libraries(${name} PRIVATE onesum_test_support)
    target_precompile_headers(${name} REUSE_FROM onesum_test_support)
  endif()
  if(folder STREQUAL "cli" AND TARGET onesum_cli)
    target_link_libraries(${name} PRIVATE onesum_cli)
  endif()
  if(folder STREQUAL "cli" AND TARGET onesum_tool)
    target_compile_definitions(${name} PRIVATE ONESUM_TOOL="$<TARGET_FILE:onesum_tool>")
    add_dependencies(${name} onesum_tool)
    if(ONESUM_WITH_CUDA)
      target_compile_definitions(${name} PRIVATE ONESUM_CUDA_PLUGIN="$<TARGET_FILE:onesum_cuda>"
        ONESUM_EMULATED_GPU="${PROJECT_BINARY_DIR}/emulated_gpu")
      add_dependencies(${name} onesum_cuda onesum_emulated_gpu)
    endif()
  endif()
  if(folder MATCHES "^(api|processes|gpu|gpu_processes)$")
    target_link_libraries(${name} PRIVATE onesum_test_conformance)
  endif()
  if(folder STREQUAL "engine")
    target_link_libraries(${name} PRIVATE onesum_kernel_twins)
  endif()
  if(folder STREQUAL "exec")
    file(GLOB sample_plans CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/plan/sample_*.cc")
    target_sources(${name} PRIVATE ${sample_plans})
  endif()
  if(folder STREQUAL "machines")
    target_sources(${name} PRIVATE "${PROJECT_SOURCE_DIR}/tests/processes/workers.cc"
      "${PROJECT_SOURCE_DIR}/tests/processes/calls.cc")
  endif()
  if(folder STREQUAL "emulated_gpu_self")
    target_link_libraries(${name} PRIVATE onesum_emulated_gpu_self)
  endif()
  target_link_libraries(${name} PRIVATE onesum_test_flags GTest::gmock_main)
  if(folder STREQUAL "gpu_processes")
    target_sources(${name} PRIVATE "${PROJECT_SOURCE_DIR}/tests/processes/workers.cc"
      "${PROJECT_SOURCE_DIR}/tests/gpu/callers.cc" "${PROJECT_SOURCE_DIR}/tests/gpu/cuda_calls.cc"
      "${PROJECT_SOURCE_DIR}/tests/gpu/emulator.cc" "${PROJECT_SOURCE_DIR}/tests/gpu/gpus.cc")
    target_include_directories(${name} SYSTEM PRIVATE ${ONESUM_CUDA_INCLUDE_DIRS})
    onesum_gpu_tests(${name} ${folder} ${label} ${timeout})
  elseif(folder STREQUAL "gpu")
    target_include_directories(${name} SYSTEM PRIVATE ${ONESUM_CUDA_INCLUDE_DIRS})
    target_compile_definitions(${name} PRIVATE ONESUM_CUDA_PLUGIN="$<TARGET_FILE:onesum_cuda>"
      ONESUM_NCCL_STAND_INS="${PROJECT_BINARY_DIR}/nccl_stand_ins")
    add_dependencies(${name} onesum_nccl_old onesum_nccl_stuck)
    onesum_gpu_tests(${name} ${folder} ${label} ${timeout})
  else()
    gtest_discover_tests(${name}
      TEST_PREFIX "${folder}/" DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60
      WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}"
      PROPERTIES LABELS ${label} TIMEOUT ${timeout} ${ONESUM_TEST_PROPERTIES})
  endif()
  add_dependencies(onesum_tests ${name})
  if(label STREQUAL "fast")
    add_dependencies(onesum_tests_fast ${name})
  endif()
endfunction()

file(GLOB_RECURSE test_sources CONFIGURE_DEPENDS RELATIVE "${PROJECT_SOURCE_DIR}/tests"
  "${PROJECT_SOURCE_DIR}/tests/*_test.cc")
set(test_folders "")
foreach(source IN LISTS test_sources)
  cmake_path(GET source PARENT_PATH folder)
  if(folder STREQUAL "")
    message(FATAL_ERROR "tests/${source}: a test lives in a folder of tests/, named after what it tests")
  endif()
  list(APPEND test_folders "${folder}")
endforeach()
list(REMOVE_DUPLICATES test_folders)
if(NOT ONESUM_WITH_CUDA)
  list(REMOVE_ITEM test_folders emulated_gpu_self gpu gpu_processes)
endif()

foreach(folder IN LISTS test_folders)
  file(GLOB all CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/${folder}/*.cc")
  set(helpers "${all}")
  list(FILTER helpers EXCLUDE REGEX "_test\\.cc$")
  if(folder STREQUAL "support")
    set(helpers "")
  endif()
  set(fast "${all}")
  list(FILTER fast INCLUDE REGEX "_test\\.cc$")
  set(full "${fast}")
  set(exhaustive "${fast}")
  list(FILTER fast EXCLUDE REGEX "_(full|exhaustive)_test\\.cc$")
  list(FILTER full INCLUDE REGEX "_full_test\\.cc$")
  list(FILTER exhaustive INCLUDE REGEX "_exhaustive_test\\.cc$")
  # Seconds a single test may take; sanitized programs are several times slower than the rest.
  if(fast)
    onesum_test_program(${folder} fast 300 ${fast} ${helpers})
  endif()
  if(full)
    onesum_test_program(${folder} full 900 ${full} ${helpers})
  endif()
  if(exhaustive)
    onesum_test_program(${folder} exhaustive 21600 ${exhaustive} ${helpers})
  endif()
endforeach()

if(ONESUM_WITH_PYTHON AND NOT ONESUM_SANITIZE)
  include(OnesumPythonTests)
endif()

# Checks that are no GoogleTest programs.
add_test(NAME layers/check_layers COMMAND "${PROJECT_SOURCE_DIR}/tools/check_layers")
add_test(NAME layers/self_test COMMAND "${PROJECT_SOURCE_DIR}/tools/check_layers" --self-test)
add_test(NAME pages/check_readme COMMAND "${PROJECT_SOURCE_DIR}/tools/check_readme")
add_test(NAME bench/instructions_self_test COMMAND "${PROJECT_SOURCE_DIR}/tools/check_instructions" --self-test)
add_test(NAME bench/peers_self_test COMMAND "${PROJECT_SOURCE_DIR}/bench/peers/peers.py" self-test)
set_tests_properties(layers/check_layers layers/self_test pages/check_readme bench/instructions_self_test
  bench/peers_self_test PROPERTIES LABELS fast TIMEOUT 60)

if(TARGET onesum_tool AND NOT ONESUM_SANITIZE)
  set(plug_in "")
  if(ONESUM_WITH_CUDA)
    set(plug_in --plug-in $<TARGET_FILE:onesum_cuda>)
    add_dependencies(onesum_tests_fast onesum_cuda)
    add_test(NAME linkage/check_ptx COMMAND "${PROJECT_SOURCE_DIR}/tests/linkage/check_ptx"
      "${ONESUM_NVCC}" ${ONESUM_NVCC_FLAGS})
    set_tests_properties(linkage/check_ptx PROPERTIES LABELS full TIMEOUT 300)
  endif()
  add_test(NAME linkage/no_cuda COMMAND "${PROJECT_SOURCE_DIR}/tests/linkage/run"
    $<TARGET_FILE:onesum_shared> $<TARGET_FILE:onesum_tool> ${plug_in})
  set_tests_properties(linkage/no_cuda PROPERTIES LABELS fast TIMEOUT 60)
  add_dependencies(onesum_tests_fast onesum_shared onesum_tool)
endif()

# make test-gpu, where there is no GPU, and with emulated ones that it takes for real.
if(TARGET onesum_tool AND ONESUM_WITH_CUDA)
  add_test(NAME gpu/test_gpu_without_gpu COMMAND "${PROJECT_SOURCE_DIR}/tools/test_gpu" "${PROJECT_BINARY_DIR}")
  set_tests_properties(gpu/test_gpu_without_gpu PROPERTIES LABELS fast TIMEOUT 60
    PASS_REGULAR_EXPRESSION "^no GPU found: CUDA [0-9.]+, no driver: "
    ENVIRONMENT "LD_LIBRARY_PATH=${PROJECT_BINARY_DIR}/emulated_gpu;EMULATED_GPU_DRIVER=none")
  add_test(NAME gpu/test_gpu_on_five COMMAND "${PROJECT_SOURCE_DIR}/tools/test_gpu" "${PROJECT_BINARY_DIR}")
  set_tests_properties(gpu/test_gpu_on_five PROPERTIES LABELS full TIMEOUT 900
    ENVIRONMENT "LD_LIBRARY_PATH=${PROJECT_BINARY_DIR}/emulated_gpu;EMULATED_GPU_DEVICES=5;EMULATED_GPU_HIDDEN=1")
endif()

add_test(NAME pages/algorithms
  COMMAND onesum_algorithms_doc --check "${PROJECT_SOURCE_DIR}/docs/algorithms.md")
set_tests_properties(pages/algorithms PROPERTIES LABELS fast TIMEOUT 60)
add_dependencies(onesum_tests_fast onesum_algorithms_doc)

# The examples do what they say; the trainer fails below 95 %.
foreach(example train_digits quick_start)
  if(TARGET onesum_example_${example})
    add_test(NAME examples/${example} COMMAND onesum_example_${example})
    set_tests_properties(examples/${example} PROPERTIES LABELS full TIMEOUT 120
      ENVIRONMENT "XDG_CACHE_HOME=${ONESUM_TEST_CACHE}")
  endif()
endforeach()

if(ONESUM_INSTALL AND NOT ONESUM_SANITIZE)
  add_test(NAME consumer/installed_package
    COMMAND "${PROJECT_SOURCE_DIR}/tests/consumer/run" "${PROJECT_BINARY_DIR}" "${CMAKE_CXX_COMPILER}")
  set_tests_properties(consumer/installed_package PROPERTIES LABELS full TIMEOUT 300
    ENVIRONMENT "XDG_CACHE_HOME=${ONESUM_TEST_CACHE}")
endif()
