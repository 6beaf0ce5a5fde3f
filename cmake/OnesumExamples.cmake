# examples/<name>.cc becomes <build>/examples/<name>. Examples see what a user sees: the public headers
# and, with BUILD_SHARED_LIBS, the exported symbols.
file(GLOB examples CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/examples/*.cc")
if(examples)
  find_package(ZLIB REQUIRED)
endif()
foreach(source IN LISTS examples)
  cmake_path(GET source STEM name)
  add_executable(onesum_example_${name} "${source}")
  target_link_libraries(onesum_example_${name} PRIVATE onesum_build onesum::onesum Threads::Threads ZLIB::ZLIB)
  target_compile_definitions(onesum_example_${name} PRIVATE
    ONESUM_EXAMPLES_DIR="${PROJECT_SOURCE_DIR}/examples")
  set_target_properties(onesum_example_${name} PROPERTIES
    OUTPUT_NAME ${name} RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/examples")
endforeach()
