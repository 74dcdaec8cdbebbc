# SPDX-License-Identifier: Apache-2.0
#
# `cpack -G DEB`: a Debian package of what is installed, gofs_VERSION_ARCHITECTURE.deb.
if(NOT GOFS_INSTALL OR NOT PROJECT_IS_TOP_LEVEL)
  return()
endif()
set(CPACK_GENERATOR DEB)
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_PACKAGE_NAME gofs)
set(CPACK_PACKAGE_VENDOR "The GoFS project")
set(CPACK_PACKAGE_CONTACT "The GoFS project")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_PACKAGE_DESCRIPTION "\
GoFS reads and writes F2FS volumes from CUDA kernels and from host programs, through NVMe\n\
queues that GPU threads drive. Linux mounts the same volumes. Where there is no GPU the same code\n\
runs on the CPU. This package has the commands gofs and gofs-bench, the server gofsd, the\n\
libraries and what is needed to build programs with them.")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_RESOURCE_FILE_LICENSE "${PROJECT_SOURCE_DIR}/LICENSE")

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION utils)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(gofs_triggers "${PROJECT_BINARY_DIR}/lib/triggers")
file(CONFIGURE OUTPUT "${gofs_triggers}" CONTENT "activate-noawait ldconfig\n")
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS f2fs-tools)
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "libblkid-dev, liburing-dev")  # to link libgofs.a
if(GOFS_CUDA)
  set(CPACK_PACKAGE_NAME gofs-cuda)
  set(CPACK_DEBIAN_PACKAGE_PROVIDES gofs)
  set(CPACK_DEBIAN_PACKAGE_CONFLICTS gofs)
  set(CPACK_DEBIAN_PACKAGE_REPLACES gofs)
endif()
# What packages of programs that link libgofs.so depend on: until 1.0 another minor version will not
# do (GofsLibrary.cmake).
math(EXPR gofs_next_minor "${PROJECT_VERSION_MINOR} + 1")
set(gofs_shlibs "${PROJECT_BINARY_DIR}/lib/shlibs")
string(CONCAT gofs_shlibs_line "libgofs ${PROJECT_VERSION_MAJOR} "
  "${CPACK_PACKAGE_NAME} (>= ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}), "
  "${CPACK_PACKAGE_NAME} (<< ${PROJECT_VERSION_MAJOR}.${gofs_next_minor}~)")
file(CONFIGURE OUTPUT "${gofs_shlibs}" CONTENT "${gofs_shlibs_line}\n")
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA "${gofs_triggers};${gofs_shlibs}")
include(CPack)
