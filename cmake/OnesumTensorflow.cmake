# The bridge to TensorFlow: target onesum_tensorflow, the library of ops onesum/tensorflow/_tensorflow.so from
# python/tensorflow.
#   ONESUM_TENSORFLOW         on, off, or auto (default): where the Python in use has TensorFlow
#   ONESUM_TENSORFLOW_PYTHON  the interpreter whose TensorFlow to build for; else the Python package's, or python3
# It fits the TensorFlow it was built with and no other, whose version it keeps for onesum/_bridges.py to compare. In
# the build tree the package is <build>/python-package/onesum, for PYTHONPATH. The wheel has its sources.
if(SKBUILD)
  return()
endif()
set(ONESUM_TENSORFLOW_PYTHON "" CACHE FILEPATH "Python whose TensorFlow the bridge is built for")
set(ONESUM_WITH_TENSORFLOW OFF)

if(ONESUM_TENSORFLOW_PYTHON)
  set(tensorflow_python "${ONESUM_TENSORFLOW_PYTHON}")
elseif(Python_EXECUTABLE)
  set(tensorflow_python "${Python_EXECUTABLE}")
else()
  find_program(tensorflow_python python3)
endif()

# One line for each: version, include folder, flags but for the language's version, the library.
execute_process(COMMAND "${CMAKE_COMMAND}" -E env TF_CPP_MIN_LOG_LEVEL=3 "${tensorflow_python}" -c [[
import os
import tensorflow as tf
print(tf.__version__)
print(tf.sysconfig.get_include())
print(";".join(f for f in tf.sysconfig.get_compile_flags() if not f.startswith("-I") and "std=" not in f))
library = [f.removeprefix("-l:") for f in tf.sysconfig.get_link_flags() if f.startswith("-l:")][0]
print(os.path.join(tf.sysconfig.get_lib(), library))
]] OUTPUT_VARIABLE answer OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE failed ERROR_VARIABLE reason)
if(failed)
  if(ONESUM_TENSORFLOW STREQUAL "auto")
    message(STATUS "onesum: ${tensorflow_python} has no TensorFlow, so no bridge to it")
    return()
  endif()
  message(FATAL_ERROR "ONESUM_TENSORFLOW is on, but ${tensorflow_python} cannot import tensorflow: ${reason}")
endif()
string(REGEX REPLACE ";" "\\\\;" answer "${answer}")
string(REPLACE "\n" ";" answer "${answer}")
list(GET answer 0 tensorflow_version)
list(GET answer 1 tensorflow_include)
list(GET answer 2 tensorflow_flags)
list(GET answer 3 tensorflow_library)
message(STATUS "onesum: TensorFlow is ${tensorflow_version} of ${tensorflow_python}")
set(ONESUM_WITH_TENSORFLOW ON)

set(tensorflow_package "${PROJECT_BINARY_DIR}/python-package/onesum/tensorflow")
file(GLOB tensorflow_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/python/tensorflow/*.cc")
add_library(onesum_tensorflow MODULE ${tensorflow_sources})
# TensorFlow's headers take most of the time: once is enough.
set_target_properties(onesum_tensorflow PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 0)
target_include_directories(onesum_tensorflow PRIVATE "${PROJECT_SOURCE_DIR}/python/tensorflow")
target_include_directories(onesum_tensorflow SYSTEM PRIVATE "${tensorflow_include}")
target_compile_options(onesum_tensorflow PRIVATE ${tensorflow_flags}
  -Wno-undef -Wno-pedantic)  # of TensorFlow's macros
target_link_libraries(onesum_tensorflow PRIVATE "${tensorflow_library}" onesum_shared onesum_build)
# TensorFlow is imported first; its library is found in the process.
set_target_properties(onesum_tensorflow PROPERTIES
  OUTPUT_NAME _tensorflow PREFIX "" SUFFIX ".so" LIBRARY_OUTPUT_DIRECTORY "${tensorflow_package}"
  INSTALL_RPATH "$ORIGIN/../lib")

file(MAKE_DIRECTORY "${tensorflow_package}")
file(CONFIGURE OUTPUT "${tensorflow_package}/_built_for.py" CONTENT
  "# The TensorFlow that _tensorflow.so was built with.\nTENSORFLOW_VERSION = \"@tensorflow_version@\"\n" @ONLY)
# The package's own files, as links, so that they can be edited.
file(GLOB tensorflow_files CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/python/onesum/tensorflow/*.py")
foreach(file IN LISTS tensorflow_files)
  cmake_path(GET file FILENAME name)
  file(CREATE_LINK "${file}" "${tensorflow_package}/${name}" SYMBOLIC)
endforeach()
