# Tests of the Python package: python/<file> runs python/tests/test_<file>.py on the package of the build tree,
# python/pip_install installs it into a virtual environment of its own.
file(GLOB python_tests CONFIGURE_DEPENDS RELATIVE "${PROJECT_SOURCE_DIR}/python/tests"
  "${PROJECT_SOURCE_DIR}/python/tests/test_*.py")
add_dependencies(onesum_tests_fast onesum_python onesum_tool)
set(python_environment "PYTHONPATH=${PROJECT_BINARY_DIR}/python-package" PYTHONDONTWRITEBYTECODE=1
  "XDG_CACHE_HOME=${ONESUM_TEST_CACHE}")
foreach(file IN LISTS python_tests)
  string(REGEX REPLACE "^test_(.*)\\.py$" "\\1" name "${file}")
  add_test(NAME python/${name} COMMAND "${Python_EXECUTABLE}" -m pytest -p no:cacheprovider
    "${PROJECT_SOURCE_DIR}/python/tests/${file}" WORKING_DIRECTORY "${PROJECT_BINARY_DIR}")
  set_tests_properties(python/${name} PROPERTIES LABELS fast TIMEOUT 300 ENVIRONMENT "${python_environment}"
    FAIL_REGULAR_EXPRESSION "nanobind: leaked")
endforeach()
add_test(NAME python/pip_install
  COMMAND "${PROJECT_SOURCE_DIR}/python/tests/pip_install" "${PROJECT_BINARY_DIR}" "${Python_EXECUTABLE}")
set_tests_properties(python/pip_install PROPERTIES LABELS full TIMEOUT 1800 PROCESSORS 2)
