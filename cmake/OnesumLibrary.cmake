# libonesum.so and libonesum.a, from the same objects.
#   onesum::shared, onesum::static   one of them, by name
#   onesum::onesum                   the one BUILD_SHARED_LIBS chooses
#   onesum_internals                 the static one with src/ in the include path: for our tools and tests

if(NOT ONESUM_ROOMS)
  message(FATAL_ERROR "src/ holds no sources")
endif()

file(GLOB public_headers CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/include/onesum/*.h")

foreach(kind shared static)
  string(TOUPPER ${kind} type)
  add_library(onesum_${kind} ${type})
  add_library(onesum::${kind} ALIAS onesum_${kind})
  foreach(room IN LISTS ONESUM_ROOMS)
    target_sources(onesum_${kind} PRIVATE $<TARGET_OBJECTS:${room}>)
  endforeach()
  target_sources(onesum_${kind} PUBLIC FILE_SET HEADERS
    BASE_DIRS "${PROJECT_SOURCE_DIR}/include" "${PROJECT_BINARY_DIR}/generated/include"
    FILES ${public_headers} "${PROJECT_BINARY_DIR}/generated/include/onesum/version.h")
  target_compile_features(onesum_${kind} PUBLIC cxx_std_20)
  target_link_libraries(onesum_${kind} PRIVATE
    Threads::Threads fmt::fmt spdlog::spdlog hwy::hwy OpenSSL::Crypto)
  if(ONESUM_WITH_UCX)
    target_link_libraries(onesum_${kind} PRIVATE PkgConfig::UCX)
  endif()
  if(ISAL_FOUND)
    target_link_libraries(onesum_${kind} PRIVATE PkgConfig::ISAL)
  endif()
  set_target_properties(onesum_${kind} PROPERTIES
    OUTPUT_NAME onesum EXPORT_NAME ${kind} LINKER_LANGUAGE CXX
    VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
  if(NOT PROJECT_IS_TOP_LEVEL)
    set_property(TARGET onesum_${kind} PROPERTY EXCLUDE_FROM_ALL ON)
  endif()
endforeach()
# Target all_verify_interface_header_sets: every public header compiles on its own.
set_property(TARGET onesum_static PROPERTY VERIFY_INTERFACE_HEADER_SETS ON)

target_link_options(onesum_shared PRIVATE -Wl,--as-needed)
if(ONESUM_SANITIZE)
  target_link_options(onesum_shared PRIVATE -fsanitize=${ONESUM_SANITIZE})
else()
  target_link_options(onesum_shared PRIVATE -Wl,--no-undefined)
endif()

if(BUILD_SHARED_LIBS)
  add_library(onesum::onesum ALIAS onesum_shared)
else()
  add_library(onesum::onesum ALIAS onesum_static)
endif()

add_library(onesum_internals INTERFACE)
target_link_libraries(onesum_internals INTERFACE onesum_static onesum_build fmt::fmt Threads::Threads)
target_include_directories(onesum_internals INTERFACE "${PROJECT_SOURCE_DIR}/src")
