# The Python package: target onesum_python, the extension onesum._core from python/src.
#   ONESUM_PYTHON          on, off (default), or auto: where build/python (make setup-python) is
#   ONESUM_PYTHON_PROGRAM  the interpreter to build for; else that of build/python, or scikit-build-core's
# In the build tree the package is <build>/python-package/onesum, for PYTHONPATH. `pip install .` installs
#   onesum/_core.*.so, onesum/lib/libonesum.so.*, onesum/lib/libonesum_cuda.so where there is CUDA, onesum/bin/onesum
# and, for bridges, which are built where they are used, onesum/include and onesum/<bridge>/sources.
set(ONESUM_PYTHON_PROGRAM "" CACHE FILEPATH "Python to build the extension for")
set(venv_python "${PROJECT_SOURCE_DIR}/build/python/bin/python")
set(ONESUM_WITH_PYTHON OFF)

if(NOT SKBUILD)
  if(NOT ONESUM_PYTHON_PROGRAM AND EXISTS "${venv_python}")
    set(ONESUM_PYTHON_PROGRAM "${venv_python}")
  endif()
  if(ONESUM_PYTHON_PROGRAM)
    set(Python_EXECUTABLE "${ONESUM_PYTHON_PROGRAM}")
  elseif(ONESUM_PYTHON STREQUAL "auto")
    message(STATUS "onesum: no build/python, so no Python extension (make setup-python)")
    return()
  endif()
endif()

find_package(Python 3.10 REQUIRED COMPONENTS Interpreter Development.Module)
execute_process(COMMAND "${Python_EXECUTABLE}" -m nanobind --cmake_dir
  OUTPUT_VARIABLE nanobind_dir OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE failed ERROR_VARIABLE reason)
if(failed)
  if(ONESUM_PYTHON STREQUAL "auto")
    message(STATUS "onesum: ${Python_EXECUTABLE} has no nanobind, so no Python extension (make setup-python)")
    return()
  endif()
  message(FATAL_ERROR "ONESUM_PYTHON is on, but ${Python_EXECUTABLE} has no nanobind (make setup-python): ${reason}")
endif()
find_package(nanobind REQUIRED CONFIG PATHS "${nanobind_dir}" NO_DEFAULT_PATH)
set(ONESUM_WITH_PYTHON ON)

file(GLOB python_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/python/src/*.cc")
nanobind_add_module(onesum_python NB_STATIC NOMINSIZE NB_SUPPRESS_WARNINGS ${python_sources})
target_link_libraries(onesum_python PRIVATE onesum_shared onesum_build)
# nanobind's types are not const where Python's are not.
target_compile_options(onesum_python PRIVATE -Wno-cast-qual)
set(package "${PROJECT_BINARY_DIR}/python-package/onesum")
set_target_properties(onesum_python PROPERTIES
  OUTPUT_NAME _core LIBRARY_OUTPUT_DIRECTORY "${package}"
  INSTALL_RPATH "$ORIGIN/lib")

add_custom_target(onesum_wheel DEPENDS onesum_python onesum_shared onesum_tool)
if(TARGET onesum_cuda)
  add_dependencies(onesum_wheel onesum_cuda)
endif()
if(SKBUILD)
  install(TARGETS onesum_python LIBRARY DESTINATION onesum)
  install(TARGETS onesum_shared LIBRARY DESTINATION onesum/lib NAMELINK_SKIP)
  install(TARGETS onesum_tool RUNTIME DESTINATION onesum/bin)
  if(TARGET onesum_cuda)
    install(TARGETS onesum_cuda LIBRARY DESTINATION onesum/lib)
  endif()
  install(DIRECTORY include/onesum "${PROJECT_BINARY_DIR}/generated/include/onesum" DESTINATION onesum/include
    FILES_MATCHING PATTERN "*.h")
  foreach(bridge tensorflow torch)
    if(EXISTS "${PROJECT_SOURCE_DIR}/python/${bridge}")
      install(DIRECTORY python/${bridge}/ DESTINATION onesum/${bridge}/sources
        FILES_MATCHING PATTERN "*.h" PATTERN "*.cc")
    endif()
  endforeach()
else()
  # The package's own files, as links, so that they can be edited.
  file(MAKE_DIRECTORY "${package}/bin")
  file(GLOB python_files CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/python/onesum/*")
  foreach(file IN LISTS python_files)
    cmake_path(GET file FILENAME name)
    if(NOT IS_DIRECTORY "${file}")
      file(CREATE_LINK "${file}" "${package}/${name}" SYMBOLIC)
    endif()
  endforeach()
  file(CREATE_LINK "${PROJECT_BINARY_DIR}/onesum" "${package}/bin/onesum" SYMBOLIC)
endif()
