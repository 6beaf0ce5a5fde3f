# onesum_emulated_gpu(<target> <folder> <sources of kernel twins>...): a library in <build>/<folder>/ that
# stands in for libcudart.so.13 and libnccl.so.2 where there is no GPU. A program finds it through
# LD_LIBRARY_PATH, or is linked to <target>. tests/emulated_gpu/emulated_gpu.h says what can be set and asked,
# kernel_twin.h what a twin is.
# All of it needs the headers of CUDA and NCCL; the library onesum_kernel_twins, the GPU's kernels compiled for
# the host, what prepares their launches and what keeps their memory, needs none.
add_library(onesum_kernel_twins STATIC
  "${PROJECT_SOURCE_DIR}/tests/emulated_gpu/kernel_twins.cc"
  "${PROJECT_SOURCE_DIR}/src/engine/cuda/block_pool.cc"
  "${PROJECT_SOURCE_DIR}/src/engine/cuda/kernel_forms.cc"
  "${PROJECT_SOURCE_DIR}/src/engine/cuda/launch_arguments.cc"
  "${PROJECT_SOURCE_DIR}/src/engine/cuda/reduce_steps.cc")
target_link_libraries(onesum_kernel_twins PUBLIC onesum_internals)
target_include_directories(onesum_kernel_twins PUBLIC "${PROJECT_SOURCE_DIR}/tests")

if(NOT ONESUM_WITH_CUDA)
  message(STATUS "onesum: no CUDA, so no tests with emulated GPUs")
  return()
endif()

file(GLOB emulated_gpu_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/emulated_gpu/*.cc")
list(FILTER emulated_gpu_sources EXCLUDE REGEX "/kernel_twins[^/]*\\.cc$")
add_library(onesum_emulated_gpu_objects OBJECT EXCLUDE_FROM_ALL ${emulated_gpu_sources})
target_link_libraries(onesum_emulated_gpu_objects PRIVATE onesum_build Threads::Threads)
target_include_directories(onesum_emulated_gpu_objects PUBLIC "${PROJECT_SOURCE_DIR}/tests")
target_include_directories(onesum_emulated_gpu_objects SYSTEM PUBLIC
  ${ONESUM_CUDA_INCLUDE_DIRS})
# What is visible is said by exports.map.
set_target_properties(onesum_emulated_gpu_objects PROPERTIES CXX_VISIBILITY_PRESET default)

function(onesum_emulated_gpu target folder)
  set(exports "${PROJECT_SOURCE_DIR}/tests/emulated_gpu/exports.map")
  add_library(${target} SHARED ${ARGN})
  target_link_libraries(${target} PRIVATE onesum_build onesum_emulated_gpu_objects Threads::Threads)
  target_include_directories(${target} PUBLIC "${PROJECT_SOURCE_DIR}/tests")
  target_include_directories(${target} SYSTEM PUBLIC ${ONESUM_CUDA_INCLUDE_DIRS})
  # Its threads run until the process ends, so it is never unloaded.
  target_link_options(${target} PRIVATE -Wl,--version-script=${exports} -Wl,-z,nodelete -Wl,-Bsymbolic)
  set_target_properties(${target} PROPERTIES
    OUTPUT_NAME cudart SOVERSION 13 LINK_DEPENDS "${exports}"
    LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/${folder}")
  add_custom_command(TARGET ${target} POST_BUILD
    COMMAND "${CMAKE_COMMAND}" -E create_symlink libcudart.so.13 libnccl.so.2
    WORKING_DIRECTORY "${PROJECT_BINARY_DIR}/${folder}")
endfunction()

set(emulated_gpu_self "${PROJECT_SOURCE_DIR}/tests/emulated_gpu_self")
onesum_emulated_gpu(onesum_emulated_gpu emulated_gpu "${PROJECT_SOURCE_DIR}/tests/emulated_gpu/kernel_twins.cc")
target_include_directories(onesum_emulated_gpu PRIVATE "${PROJECT_SOURCE_DIR}/src")
# With a kernel of its own, for its own tests.
onesum_emulated_gpu(onesum_emulated_gpu_self emulated_gpu_self "${emulated_gpu_self}/twins/kernel_twins.cc")

# Libraries that call themselves libnccl.so.2 and are of no use: too old, or never at an end.
foreach(kind old stuck)
  add_library(onesum_nccl_${kind} SHARED EXCLUDE_FROM_ALL
    "${PROJECT_SOURCE_DIR}/tests/gpu/nccl_stand_ins/${kind}.cc")
  target_link_libraries(onesum_nccl_${kind} PRIVATE onesum_build)
  target_include_directories(onesum_nccl_${kind} PRIVATE "${PROJECT_SOURCE_DIR}/tests")
  target_include_directories(onesum_nccl_${kind} SYSTEM PRIVATE ${ONESUM_CUDA_INCLUDE_DIRS})
  set_target_properties(onesum_nccl_${kind} PROPERTIES OUTPUT_NAME nccl SOVERSION 2
    LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/nccl_stand_ins/${kind}")
endforeach()
target_link_libraries(onesum_nccl_stuck PRIVATE onesum_emulated_gpu)
target_link_options(onesum_nccl_stuck PRIVATE -Wl,--no-as-needed)
