# The GPU plug-in, libonesum_cuda.so, next to libonesum: target onesum_cuda, from src/engine/cuda and
# src/engine/nccl. It alone needs CUDA's runtime library; whoever has no GPU never opens it.
#   ONESUM_CUDA                auto: built where CUDA is found; on: an error if it is not; off
#   ONESUM_CUDA_HOME           where CUDA is. Else the first of these that has all it takes: $CUDA_HOME,
#                              build/cuda-venv (make setup-cuda), /usr/local/cuda
#   ONESUM_CUDA_ARCHITECTURES  GPUs to compile for, as numbers ("75", "80;90"), and PTX of the last for newer
#                              ones; "all" is all that nvcc knows, for releases
# Sets ONESUM_WITH_CUDA, and ONESUM_CUDA_INCLUDE_DIRS where it is on.
set(ONESUM_CUDA auto CACHE STRING "Build the GPU plug-in: auto, on or off")
set_property(CACHE ONESUM_CUDA PROPERTY STRINGS auto on off)
set(ONESUM_CUDA_HOME "" CACHE PATH "Folder of CUDA, which has bin/nvcc")
set(ONESUM_CUDA_ARCHITECTURES 75 CACHE STRING "GPUs to compile for: numbers, or all")

# Sets in the caller's scope what a folder has of CUDA, and `missing` to what it lacks. Python wheels keep
# NCCL next to CUDA, and no library under a name without a version.
function(onesum_look_for_cuda home)
  set(missing "")
  set(nvcc "${home}/bin/nvcc")
  if(NOT EXISTS "${nvcc}")
    list(APPEND missing bin/nvcc)
  endif()
  set(includes "")
  foreach(header cuda_runtime_api.h nccl.h)
    unset(folder)
    find_path(folder ${header} NO_CACHE NO_DEFAULT_PATH
      PATHS "${home}/include" "${home}/targets/${CMAKE_SYSTEM_PROCESSOR}-linux/include" "${home}/../nccl/include")
    if(folder)
      list(APPEND includes "${folder}")
    else()
      list(APPEND missing ${header})
    endif()
  endforeach()
  list(REMOVE_DUPLICATES includes)
  unset(cudart)
  find_file(cudart NAMES libcudart.so.13 libcudart.so NO_CACHE NO_DEFAULT_PATH
    PATHS "${home}/lib64" "${home}/lib" "${home}/targets/${CMAKE_SYSTEM_PROCESSOR}-linux/lib")
  if(NOT cudart)
    list(APPEND missing libcudart.so.13)
  endif()
  foreach(result missing nvcc includes cudart)
    set(${result} "${${result}}" PARENT_SCOPE)
  endforeach()
endfunction()

function(onesum_find_cuda)
  if(ONESUM_CUDA_HOME)
    set(homes "${ONESUM_CUDA_HOME}")
  else()
    file(GLOB wheels "${PROJECT_SOURCE_DIR}/build/cuda-venv/lib/python3*/site-packages/nvidia/cu13")
    set(homes "$ENV{CUDA_HOME}" ${wheels} /usr/local/cuda)
  endif()
  set(reasons "")
  foreach(home IN LISTS homes)
    if(NOT home)
      continue()
    endif()
    onesum_look_for_cuda("${home}")
    if(NOT missing)
      message(STATUS "onesum: CUDA is ${home}")
      set(ONESUM_WITH_CUDA ON PARENT_SCOPE)
      set(ONESUM_NVCC "${nvcc}" PARENT_SCOPE)
      set(ONESUM_CUDART "${cudart}" PARENT_SCOPE)
      set(ONESUM_CUDA_INCLUDE_DIRS "${includes}" PARENT_SCOPE)
      return()
    endif()
    list(JOIN missing ", " lacks)
    string(APPEND reasons "; ${home} has no ${lacks}")
  endforeach()
  if(ONESUM_CUDA STREQUAL "on")
    message(FATAL_ERROR "ONESUM_CUDA is on, but CUDA was not found${reasons}. "
      "Set ONESUM_CUDA_HOME, or let `make setup-cuda` install it below build/")
  endif()
  message(STATUS "onesum: no CUDA, so no GPU plug-in (make setup-cuda)${reasons}")
endfunction()

# The -gencode options for ONESUM_CUDA_ARCHITECTURES.
function(onesum_cuda_code result)
  set(numbers ${ONESUM_CUDA_ARCHITECTURES})
  if(numbers STREQUAL "all")
    execute_process(COMMAND "${ONESUM_NVCC}" --list-gpu-arch OUTPUT_VARIABLE known COMMAND_ERROR_IS_FATAL ANY)
    string(REGEX MATCHALL "[0-9]+" numbers "${known}")
    list(SORT numbers COMPARE NATURAL)
  endif()
  set(options "")
  foreach(number IN LISTS numbers)
    list(APPEND options "-gencode=arch=compute_${number},code=sm_${number}")
  endforeach()
  list(GET numbers -1 last)
  list(APPEND options "-gencode=arch=compute_${last},code=compute_${last}")
  set(${result} "${options}" PARENT_SCOPE)
endfunction()

# What the bits of results depend on: no multiplication is contracted into an addition, division is IEEE's,
# subnormals are kept. tests/linkage/check_ptx looks at what comes out.
set(ONESUM_NVCC_FLAGS -std=c++20 -O3 --fmad=false --prec-div=true --prec-sqrt=true --ftz=false
  "-I${PROJECT_SOURCE_DIR}/src" -ccbin "${CMAKE_CXX_COMPILER}")

# CMake's own support for CUDA would want to link a program first, for which wheels lack files.
function(onesum_add_cuda)
  set(source "${PROJECT_SOURCE_DIR}/src/engine/cuda/kernels.cu")
  set(object "${PROJECT_BINARY_DIR}/cuda/kernels.o")
  file(MAKE_DIRECTORY "${PROJECT_BINARY_DIR}/cuda")
  onesum_cuda_code(code)
  add_custom_command(OUTPUT "${object}"
    COMMAND ${CMAKE_CXX_COMPILER_LAUNCHER} "${ONESUM_NVCC}" ${ONESUM_NVCC_FLAGS} ${code} --threads 0
      -Xcompiler=-fPIC,-fvisibility=hidden -MD -MF "${object}.d" -c "${source}" -o "${object}"
    DEPENDS "${source}" DEPFILE "${object}.d" COMMENT "Building CUDA object ${object}" VERBATIM)

  file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/engine/cuda/*.cc"
    "${PROJECT_SOURCE_DIR}/src/engine/nccl/*.cc" "${PROJECT_SOURCE_DIR}/src/engine/cuda_plugin/*.cc")
  set(exports "${PROJECT_SOURCE_DIR}/cmake/onesum_cuda.map")
  add_library(onesum_cuda MODULE ${sources} "${object}" $<TARGET_OBJECTS:onesum_room_base>)
  target_include_directories(onesum_cuda PRIVATE "${PROJECT_SOURCE_DIR}/src")
  target_include_directories(onesum_cuda SYSTEM PRIVATE ${ONESUM_CUDA_INCLUDE_DIRS})
  target_link_libraries(onesum_cuda PRIVATE onesum_build Threads::Threads ${CMAKE_DL_LIBS} fmt::fmt spdlog::spdlog
    "${ONESUM_CUDART}")
  target_link_options(onesum_cuda PRIVATE -Wl,--as-needed "-Wl,--version-script=${exports}")
  # Users' libraries are found as they say, not where ours was built.
  set_target_properties(onesum_cuda PROPERTIES LINK_DEPENDS "${exports}" SKIP_BUILD_RPATH ON
    LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}")
  if(NOT ONESUM_SANITIZE)
    target_link_options(onesum_cuda PRIVATE -Wl,--no-undefined)
  endif()
endfunction()

set(ONESUM_WITH_CUDA OFF)
string(TOLOWER "${ONESUM_CUDA}" ONESUM_CUDA)
if(NOT ONESUM_CUDA MATCHES "^(auto|on|off)$")
  message(FATAL_ERROR "ONESUM_CUDA is \"${ONESUM_CUDA}\", not auto, on or off")
endif()
if(NOT ONESUM_CUDA STREQUAL "off")
  onesum_find_cuda()
endif()
if(ONESUM_WITH_CUDA)
  onesum_add_cuda()
endif()
