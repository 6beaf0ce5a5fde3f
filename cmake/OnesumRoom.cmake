# onesum_room(<folder of src/>): the room's *.cc (not those of its subfolders) as the OBJECT library
# onesum_room_<folder>, appended to ONESUM_ROOMS. A room of headers only makes no library; a
# source that appears later is found by the next build.
#
# What most sources include of other people's is read once, in every room: half of the time that a build takes. It is
# left out where a source is compiled several times over (hwy/foreach_target.h), and by the preset dev, which so
# sees whether every source includes what it uses.
add_library(onesum_read_once OBJECT "${PROJECT_SOURCE_DIR}/cmake/read_once.cc")
target_link_libraries(onesum_read_once PRIVATE onesum_build Threads::Threads fmt::fmt spdlog::spdlog hwy::hwy)
target_precompile_headers(onesum_read_once PRIVATE
  <algorithm> <array> <chrono> <cstddef> <cstdint> <cstring> <functional> <map> <memory> <mutex> <optional> <set>
  <span> <string> <string_view> <utility> <variant> <vector> <fmt/format.h>)

function(onesum_room folder)
  file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/${folder}/*.cc")
  if(NOT sources)
    return()
  endif()
  string(REPLACE "/" "_" name "${folder}")
  add_library(onesum_room_${name} OBJECT ${sources})
  target_include_directories(onesum_room_${name} PRIVATE "${PROJECT_SOURCE_DIR}/src")
  target_link_libraries(onesum_room_${name} PRIVATE
    onesum_build Threads::Threads fmt::fmt spdlog::spdlog hwy::hwy)
  target_precompile_headers(onesum_room_${name} REUSE_FROM onesum_read_once)
  foreach(source IN LISTS sources)
    file(STRINGS "${source}" per_target REGEX "include .*hwy/foreach_target\\.h")
    if(per_target)
      if(ONESUM_SANITIZE)
        set_property(SOURCE "${source}" APPEND PROPERTY COMPILE_OPTIONS ${ONESUM_SANITIZE_LESS})
      endif()
      set_property(SOURCE "${source}" PROPERTY SKIP_PRECOMPILE_HEADERS ON)
    endif()
  endforeach()
  list(APPEND ONESUM_ROOMS onesum_room_${name})
  set(ONESUM_ROOMS "${ONESUM_ROOMS}" PARENT_SCOPE)
endfunction()
