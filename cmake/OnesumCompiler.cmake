# How everything here is compiled: the target onesum_build, which all our own targets link privately.
# Nothing of it reaches a user of the library.

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES AND PROJECT_IS_TOP_LEVEL)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()

find_program(ONESUM_CCACHE ccache)
if(ONESUM_CCACHE AND NOT DEFINED CMAKE_CXX_COMPILER_LAUNCHER)
  # ccache wants to be told that the macros of a precompiled header are known by its name. What was compiled in one
  # checkout serves another.
  set(CMAKE_CXX_COMPILER_LAUNCHER "${CMAKE_COMMAND}" -E env CCACHE_SLOPPINESS=pch_defines,time_macros
    "CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}" CCACHE_NOHASHDIR=1 "${ONESUM_CCACHE}")
endif()

set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

add_library(onesum_build INTERFACE)
target_compile_features(onesum_build INTERFACE cxx_std_20)
target_include_directories(onesum_build INTERFACE
  "${PROJECT_SOURCE_DIR}/include" "${PROJECT_BINARY_DIR}/generated/include")

# A fused multiply-add rounds once where two operations round twice: without this flag the bits of a
# result would depend on the machine and the compiler.
target_compile_options(onesum_build INTERFACE -ffp-contract=off)

if(PROJECT_IS_TOP_LEVEL)
  target_compile_options(onesum_build INTERFACE
    -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual
    -Wcast-qual -Wextra-semi -Wimplicit-fallthrough -Wundef -Wvla
    -Wno-sign-conversion)
endif()
if(ONESUM_WARNINGS_AS_ERRORS)
  target_compile_options(onesum_build INTERFACE -Werror)
endif()

if(ONESUM_SANITIZE)
  target_compile_options(onesum_build INTERFACE
    -fsanitize=${ONESUM_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(onesum_build INTERFACE -fsanitize=${ONESUM_SANITIZE})
endif()
# For sources that Highway compiles once for each instruction set, where every small function is inlined
# into every other: these checks of locals and pointers would take minutes to compile.
set(ONESUM_SANITIZE_LESS
  -fno-sanitize-address-use-after-scope -fno-sanitize=null,alignment,object-size,pointer-overflow,vptr)
