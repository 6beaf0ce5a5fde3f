# onesum_room(<folder of src/>): the room's *.cc (not those of its subfolders) as the OBJECT library
# onesum_room_<folder>, appended to ONESUM_ROOMS. A room of headers only makes no library; a
# source that appears later is found by the next build.
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
  if(ONESUM_SANITIZE)
    foreach(source IN LISTS sources)
      file(STRINGS "${source}" per_target REGEX "include .*hwy/foreach_target\\.h")
      if(per_target)
        set_property(SOURCE "${source}" APPEND PROPERTY COMPILE_OPTIONS ${ONESUM_SANITIZE_LESS})
      endif()
    endforeach()
  endif()
  list(APPEND ONESUM_ROOMS onesum_room_${name})
  set(ONESUM_ROOMS "${ONESUM_ROOMS}" PARENT_SCOPE)
endfunction()
