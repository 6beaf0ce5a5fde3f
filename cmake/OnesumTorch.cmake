# The bridge to PyTorch: target onesum_torch, the extension onesum.torch._torch from python/torch.
#   ONESUM_TORCH         on, off, or auto (default): where the Python in use has PyTorch
#   ONESUM_TORCH_PYTHON  the interpreter whose PyTorch to build for; else the Python package's, or python3
# It fits the PyTorch it was built with and no other, whose version it keeps for python/onesum/_bridges.py to
# compare. In the build tree the package is <build>/python-package/onesum, for PYTHONPATH. A wheel has the sources,
# and builds the bridge where it is used.
if(SKBUILD)
  return()
endif()
set(ONESUM_TORCH_PYTHON "" CACHE FILEPATH "Python whose PyTorch the bridge is built for")
set(ONESUM_WITH_TORCH OFF)

if(ONESUM_TORCH_PYTHON)
  set(torch_python "${ONESUM_TORCH_PYTHON}")
elseif(Python_EXECUTABLE)
  set(torch_python "${Python_EXECUTABLE}")
else()
  find_program(torch_python python3)
endif()

# One line for each: version, include folders, library folder, Python's own include folder, suffix, C++ ABI.
execute_process(COMMAND "${torch_python}" -c [[
import os, sysconfig, torch
root = os.path.dirname(torch.__file__)
include = os.path.join(root, "include")
print(torch.__version__)
print(";".join([include, os.path.join(include, "torch", "csrc", "api", "include")]))
print(os.path.join(root, "lib"))
print(sysconfig.get_path("include"))
print(sysconfig.get_config_var("EXT_SUFFIX"))
print(int(torch.compiled_with_cxx11_abi()))
]] OUTPUT_VARIABLE answer OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE failed ERROR_VARIABLE reason)
if(failed)
  if(ONESUM_TORCH STREQUAL "auto")
    message(STATUS "onesum: ${torch_python} has no PyTorch, so no bridge to it")
    return()
  endif()
  message(FATAL_ERROR "ONESUM_TORCH is on, but ${torch_python} cannot import torch: ${reason}")
endif()
string(REGEX REPLACE ";" "\\\\;" answer "${answer}")
string(REPLACE "\n" ";" answer "${answer}")
list(GET answer 0 torch_version)
list(GET answer 1 torch_includes)
list(GET answer 2 torch_libraries)
list(GET answer 3 python_include)
list(GET answer 4 extension_suffix)
list(GET answer 5 torch_abi)
message(STATUS "onesum: PyTorch is ${torch_version} of ${torch_python}")
set(ONESUM_WITH_TORCH ON)

set(torch_package "${PROJECT_BINARY_DIR}/python-package/onesum/torch")
file(GLOB torch_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/python/torch/*.cc")
add_library(onesum_torch MODULE ${torch_sources})
# PyTorch's headers take most of the time: once is enough.
set_target_properties(onesum_torch PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 0)
target_include_directories(onesum_torch PRIVATE "${PROJECT_SOURCE_DIR}/python/torch")
target_include_directories(onesum_torch SYSTEM PRIVATE ${torch_includes} "${python_include}")
target_compile_definitions(onesum_torch PRIVATE
  TORCH_EXTENSION_NAME=_torch _GLIBCXX_USE_CXX11_ABI=${torch_abi})
target_compile_options(onesum_torch PRIVATE -Wno-undef)  # of PyTorch's macros
foreach(name c10 torch_cpu torch torch_python)
  target_link_libraries(onesum_torch PRIVATE "${torch_libraries}/lib${name}.so")
endforeach()
target_link_libraries(onesum_torch PRIVATE onesum_shared onesum_build)
# PyTorch is imported first; its libraries are found in the process.
set_target_properties(onesum_torch PROPERTIES
  OUTPUT_NAME _torch PREFIX "" SUFFIX "${extension_suffix}" LIBRARY_OUTPUT_DIRECTORY "${torch_package}")

file(MAKE_DIRECTORY "${torch_package}")
file(CONFIGURE OUTPUT "${torch_package}/_built_for.py" CONTENT
  "# The PyTorch that _torch was built with.\nTORCH_VERSION = \"@torch_version@\"\n" @ONLY)
# The package's own files, as links, so that they can be edited.
file(GLOB torch_files CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/python/onesum/torch/*.py")
foreach(file IN LISTS torch_files)
  cmake_path(GET file FILENAME name)
  file(CREATE_LINK "${file}" "${torch_package}/${name}" SYMBOLIC)
endforeach()
