# SPDX-License-Identifier: Apache-2.0
#
# What `cmake --install` installs, relocatable: no file of it names the folder that it was built or
# is installed in.
#   bin/                 gofs, gofs-bench, gofsd
#   include/gofs/        the public headers; those for kernels where there is libgofs_device
#   lib/                 libgofs.so, libgofs.a, libgofs_device.a, libgofs_client.a,
#                        libgofs_device_wide.a
#   lib/cmake/gofs/      for find_package(gofs [COMPONENTS headers host device])
#   lib/pkgconfig/       gofs.pc, gofs-device.pc
#   share/               the man page, the licence, the examples
# The components "development" and "device" are what the wheel of the Python package has, too
# (python/CMakeLists.txt): headers, libgofs.so and what finds them; and what kernels take.
if(NOT GOFS_INSTALL)
  return()
endif()
include(CMakePackageConfigHelpers)

set(gofs_cmake_folder "${CMAKE_INSTALL_LIBDIR}/cmake/gofs")

# --- Headers and libraries -----------------------------------------------------------------------

install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/gofs" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
  COMPONENT development PATTERN "*.cuh" EXCLUDE PATTERN "gofs_device.h" EXCLUDE)

install(TARGETS gofs_headers gofs_shared EXPORT gofs-targets
  LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT development)
install(EXPORT gofs-targets NAMESPACE gofs:: DESTINATION "${gofs_cmake_folder}"
  COMPONENT development)
# In files of their own, since what they need may be missing where they are not asked for.
install(TARGETS gofs_static EXPORT gofs-static-targets
  ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
install(EXPORT gofs-static-targets NAMESPACE gofs:: DESTINATION "${gofs_cmake_folder}")
if(TARGET gofs_device)
  # The component "device" is all that a package without it lacks. What the library links of ours it
  # names as $<BUILD_INTERFACE:...>.
  install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/gofs" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
    COMPONENT device FILES_MATCHING PATTERN "*.cuh" PATTERN "gofs_device.h")
  set_target_properties(gofs_device PROPERTIES EXPORT_NAME device)
  set_target_properties(gofs_client PROPERTIES EXPORT_NAME client)
  set(gofs_device_libraries gofs_device gofs_client)
  if(GOFS_DEVICE_WIDE)
    set_target_properties(gofs_device_wide PROPERTIES EXPORT_NAME device_wide)
    list(APPEND gofs_device_libraries gofs_device_wide)
  endif()
  install(TARGETS ${gofs_device_libraries} EXPORT gofs-device-targets
    ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT device)
  install(EXPORT gofs-device-targets NAMESPACE gofs:: DESTINATION "${gofs_cmake_folder}"
    COMPONENT device)
endif()

# --- find_package and pkg-config -----------------------------------------------------------------

set(gofs_static_needs ${gofs_outside})
list(TRANSFORM gofs_static_needs PREPEND lib)
if(GOFS_CUDA)
  list(APPEND gofs_static_needs libcudart_static.a)
endif()
list(JOIN gofs_static_needs " or " gofs_static_needs)
set(gofs_config "${PROJECT_BINARY_DIR}/lib/gofs-config.cmake")
configure_package_config_file("${CMAKE_CURRENT_LIST_DIR}/gofs-config.cmake.in" "${gofs_config}"
  INSTALL_DESTINATION "${gofs_cmake_folder}" NO_SET_AND_CHECK_MACRO)
# Until 1.0 minor versions may differ in what programs are compiled with.
write_basic_package_version_file("${PROJECT_BINARY_DIR}/lib/gofs-config-version.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES "${gofs_config}" "${PROJECT_BINARY_DIR}/lib/gofs-config-version.cmake"
  DESTINATION "${gofs_cmake_folder}" COMPONENT development)
if(GOFS_CUDA)
  install(FILES "${CMAKE_CURRENT_LIST_DIR}/GofsCudaRuntime.cmake"
    DESTINATION "${gofs_cmake_folder}" COMPONENT development)
endif()

# Relative to the folder of gofs.pc, wherever pkg-config finds that; a folder that was set to an
# absolute path stays where it is.
if(IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}")
  set(gofs_pc_prefix "${CMAKE_INSTALL_PREFIX}")
else()
  file(RELATIVE_PATH gofs_up "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
  string(REGEX REPLACE "/$" "" gofs_up "${gofs_up}")
  set(gofs_pc_prefix "\${pcfiledir}/${gofs_up}")
endif()
cmake_path(APPEND gofs_pc_libdir "\${prefix}" "${CMAKE_INSTALL_LIBDIR}")
cmake_path(APPEND gofs_pc_includedir "\${prefix}" "${CMAKE_INSTALL_INCLUDEDIR}")
set(gofs_private_libraries "-lpthread -ldl -lstdc++ -lm")
foreach(library IN LISTS gofs_outside)
  string(PREPEND gofs_private_libraries "-l${library} ")
endforeach()
if(GOFS_CUDA)
  string(PREPEND gofs_private_libraries "-lcudart_static -lrt ")
endif()
function(gofs_install_pkgconfig name)
  configure_file("${PROJECT_SOURCE_DIR}/cmake/${name}.pc.in"
    "${PROJECT_BINARY_DIR}/lib/${name}.pc" @ONLY)
  install(FILES "${PROJECT_BINARY_DIR}/lib/${name}.pc"
    DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig" ${ARGN})
endfunction()
gofs_install_pkgconfig(gofs COMPONENT development)
if(TARGET gofs_device)
  list(JOIN CMAKE_CUDA_ARCHITECTURES " " gofs_pc_architectures)
  gofs_install_pkgconfig(gofs-device COMPONENT device)
endif()

# --- Commands and documents ----------------------------------------------------------------------

if(GOFS_COMMANDS AND TARGET gofs-bench)
  install(TARGETS gofs gofs-bench gofsd RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
  install(FILES "${PROJECT_SOURCE_DIR}/src/daemon/gofsd@.service" DESTINATION lib/systemd/system)
  configure_file("${PROJECT_SOURCE_DIR}/docs/gofs.1.in" "${PROJECT_BINARY_DIR}/lib/gofs.1" @ONLY)
  install(FILES "${PROJECT_BINARY_DIR}/lib/gofs.1" DESTINATION "${CMAKE_INSTALL_MANDIR}/man1")
endif()
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" "${PROJECT_SOURCE_DIR}/CHANGELOG.md"
  DESTINATION "${CMAKE_INSTALL_DOCDIR}")
set(gofs_examples make_volume.cpp host_read.cpp)
if(TARGET gofs_device)
  list(APPEND gofs_examples word_count.cu draw.cu
    word_count_cupy.py word_count_numba.py word_count_host.py)
endif()
list(TRANSFORM gofs_examples PREPEND "${PROJECT_SOURCE_DIR}/examples/")
install(FILES ${gofs_examples} DESTINATION "${CMAKE_INSTALL_DOCDIR}/examples")
