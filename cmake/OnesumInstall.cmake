# The installed package: headers, both libraries, CMake and pkg-config files, the tool.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/onesum")
install(TARGETS onesum_shared onesum_static EXPORT onesumTargets
  LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}"
  ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}"
  FILE_SET HEADERS DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
install(EXPORT onesumTargets NAMESPACE onesum:: DESTINATION "${package_dir}")

configure_package_config_file(cmake/onesumConfig.cmake.in generated/onesumConfig.cmake
  INSTALL_DESTINATION "${package_dir}" NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(generated/onesumConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES
  "${PROJECT_BINARY_DIR}/generated/onesumConfig.cmake"
  "${PROJECT_BINARY_DIR}/generated/onesumConfigVersion.cmake"
  DESTINATION "${package_dir}")

# pkg-config: onesum (the shared library; the static one's needs in Libs.private) and onesum-static.
file(RELATIVE_PATH pc_to_prefix "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
set(pc_static_needs "-lspdlog -lfmt -lhwy -lcrypto -pthread")
if(ONESUM_WITH_UCX)
  list(JOIN UCX_LDFLAGS " " ucx_flags)
  string(APPEND pc_static_needs " ${ucx_flags}")
endif()
if(ISAL_FOUND)
  list(JOIN ISAL_LDFLAGS " " isal_flags)
  string(APPEND pc_static_needs " ${isal_flags}")
endif()
configure_file(cmake/onesum.pc.in generated/onesum.pc @ONLY)
configure_file(cmake/onesum-static.pc.in generated/onesum-static.pc @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/generated/onesum.pc" "${PROJECT_BINARY_DIR}/generated/onesum-static.pc"
  DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")

if(TARGET onesum_cuda)
  install(TARGETS onesum_cuda LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}")
endif()
if(TARGET onesum_tool)
  install(TARGETS onesum_tool RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
endif()
