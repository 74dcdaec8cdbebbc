# SPDX-License-Identifier: Apache-2.0
#
# What other projects link, under the same names where GoFS is part of their tree and where it is
# installed:
#   gofs::headers      include/, and nothing to link
#   gofs::host         what host programs link: one of the next two. Installed it is the shared
#                      library, so that a program gets fixes without being linked again and meets
#                      none of GoFS's own dependencies; in another project's tree the static one,
#                      unless BUILD_SHARED_LIBS is set, so that its programs run from wherever they
#                      are.
#   gofs::host_shared  libgofs.so.MAJOR, which shows what is marked GOFS_API
#   gofs::host_static  libgofs.a
#   gofs::device       libgofs_device.a, where there is device code (GOFS_CUDA), and
#   gofs::device_wide  libgofs_device_wide.a (src/device)
#   gofs::client       libgofs_client.a, for kernels of programs that only attach
#
# Both libraries are made of one object, gofs.o: all layers up to host/, linked with each other
# (`ld -r`) and with all that is not GOFS_API made local, fmt's functions too. So a program may have
# functions of the same names, and any version of fmt; and it may link libgofs_device.a with nvcc
# beside libgofs.a, in which device code has been linked already: the device linker does not find
# that a second time, since its section has another name.
include(GNUInstallDirs)
if(GOFS_CUDA)
  include(GofsCudaRuntime)
  if(NOT TARGET gofs::cuda_runtime)
    message(FATAL_ERROR "libcudart_static.a is missing: set GOFS_CUDA_RUNTIME to its path")
  endif()
endif()

add_library(gofs_headers INTERFACE)
add_library(gofs::headers ALIAS gofs_headers)
set_target_properties(gofs_headers PROPERTIES EXPORT_NAME headers)
target_compile_features(gofs_headers INTERFACE cxx_std_17)
target_include_directories(gofs_headers INTERFACE
  "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>"
  "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>")

# --- gofs.o --------------------------------------------------------------------------------------

get_property(gofs_parts GLOBAL PROPERTY GOFS_LIBRARY_PARTS)
# Libraries of the system that its parts call, by name.
get_property(gofs_outside GLOBAL PROPERTY GOFS_LIBRARY_OUTSIDE)
set(gofs_part_files)
foreach(part IN LISTS gofs_parts)
  list(APPEND gofs_part_files "$<TARGET_FILE:${part}>")
endforeach()
set(gofs_object "${PROJECT_BINARY_DIR}/lib/gofs.o")
file(MAKE_DIRECTORY "${PROJECT_BINARY_DIR}/lib")
add_custom_command(
  OUTPUT "${gofs_object}"
  COMMAND "${CMAKE_LINKER}" -r --force-group-allocation -o "${gofs_object}.all"
    --whole-archive ${gofs_part_files} --no-whole-archive
  COMMAND "${CMAKE_OBJCOPY}" --localize-hidden --wildcard
    --localize-symbol=__cudaRegisterLinkedBinary* --localize-symbol=__fatbinwrap*
    --localize-symbol=*N3fmt*
    --rename-section __nv_relfatbin=__nv_relfatbin_gofs
    "${gofs_object}.all" "${gofs_object}"
  COMMAND "${CMAKE_COMMAND}" -E rm "${gofs_object}.all"
  DEPENDS ${gofs_parts} ${gofs_part_files}
  COMMENT "Linking the parts of libgofs"
  VERBATIM)
set_source_files_properties("${gofs_object}" PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
# One target makes it, for both libraries.
add_custom_target(gofs_object DEPENDS "${gofs_object}")

# --- The libraries -------------------------------------------------------------------------------

# gofs_add_library(NAME KIND WANTED): one that is not WANTED is not built by itself.
function(gofs_add_library name kind wanted)
  add_library(gofs_${name} ${kind} "${gofs_object}")
  add_library(gofs::host_${name} ALIAS gofs_${name})
  add_dependencies(gofs_${name} gofs_object)
  set_target_properties(gofs_${name} PROPERTIES
    OUTPUT_NAME gofs
    EXPORT_NAME host_${name}
    LINKER_LANGUAGE CXX
    ARCHIVE_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib"
    LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")
  set(outside pthread ${CMAKE_DL_LIBS} ${gofs_outside})
  if(GOFS_CUDA)
    list(APPEND outside gofs::cuda_runtime)
  endif()
  if(kind STREQUAL "SHARED")  # what links it needs none of them
    list(TRANSFORM outside REPLACE "(.+)" "$<BUILD_INTERFACE:\\1>")
  else()  # a project in C does not link them by itself
    list(APPEND outside stdc++ m)
  endif()
  target_link_libraries(gofs_${name} PUBLIC gofs_headers PRIVATE ${outside})
  if(NOT wanted)
    set_target_properties(gofs_${name} PROPERTIES EXCLUDE_FROM_ALL ON)
  endif()
endfunction()

set(gofs_wants_static OFF)
set(gofs_wants_shared OFF)
if(GOFS_INSTALL OR NOT BUILD_SHARED_LIBS)
  set(gofs_wants_static ON)
endif()
if(GOFS_INSTALL OR BUILD_SHARED_LIBS)
  set(gofs_wants_shared ON)
endif()
gofs_add_library(static STATIC ${gofs_wants_static})
gofs_add_library(shared SHARED ${gofs_wants_shared})
if(BUILD_SHARED_LIBS OR PROJECT_IS_TOP_LEVEL)
  add_library(gofs::host ALIAS gofs_shared)
else()
  add_library(gofs::host ALIAS gofs_static)
endif()

# Until 1.0 minor versions may change what programs are linked with, and the loader is to say so:
# symbols carry the minor version.
set(gofs_version_script "${PROJECT_BINARY_DIR}/lib/gofs.map")
configure_file("${CMAKE_CURRENT_LIST_DIR}/gofs.map.in" "${gofs_version_script}" @ONLY)
set_target_properties(gofs_shared PROPERTIES LINK_DEPENDS "${gofs_version_script}")
if(NOT SKBUILD)  # a wheel has no symbolic links
  set_target_properties(gofs_shared PROPERTIES
    VERSION "${PROJECT_VERSION}"
    SOVERSION "${PROJECT_VERSION_MAJOR}")
endif()
target_link_options(gofs_shared PRIVATE "LINKER:--version-script=${gofs_version_script}")

if(TARGET gofs_device)
  add_library(gofs::device ALIAS gofs_device)
  add_library(gofs::client ALIAS gofs_client)
  add_library(gofs::device_wide ALIAS gofs_device_wide)
endif()
