# pmix.h, for launchers that speak PMIx (Open MPI's mpirun, Slurm). Only its types are needed: the library is
# opened when such a launcher has started the process. Sets ONESUM_PMIX_INCLUDE.
find_package(PkgConfig QUIET)
if(PkgConfig_FOUND)
  pkg_check_modules(ONESUM_PMIX_PACKAGE QUIET pmix)
endif()
find_path(ONESUM_PMIX_INCLUDE pmix.h HINTS ${ONESUM_PMIX_PACKAGE_INCLUDE_DIRS}
  PATH_SUFFIXES pmix2/include "lib/${CMAKE_LIBRARY_ARCHITECTURE}/pmix2/include"
  DOC "Folder of pmix.h")
mark_as_advanced(ONESUM_PMIX_INCLUDE)

function(onesum_use_pmix target)
  if(ONESUM_PMIX_INCLUDE)
    target_include_directories(${target} SYSTEM PRIVATE "${ONESUM_PMIX_INCLUDE}")
    target_compile_definitions(${target} PRIVATE ONESUM_HAS_PMIX)
  else()
    message(STATUS "onesum: no pmix.h (Debian: libpmix-dev), so workers of Open MPI on several machines "
      "need ONESUM_ADDRESS")
  endif()
endfunction()
