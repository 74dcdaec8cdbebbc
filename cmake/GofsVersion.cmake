# SPDX-License-Identifier: Apache-2.0
#
# gofs_version: MAJOR.MINOR.PATCH, from include/gofs/version.h, the one place that has it.
set(gofs_version_header "${CMAKE_CURRENT_LIST_DIR}/../include/gofs/version.h")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${gofs_version_header}")
file(STRINGS "${gofs_version_header}" gofs_version_lines
  REGEX "^#define GOFS_VERSION_(MAJOR|MINOR|PATCH) [0-9]+$")
set(gofs_version)
foreach(part IN ITEMS MAJOR MINOR PATCH)
  if(NOT gofs_version_lines MATCHES "GOFS_VERSION_${part} ([0-9]+)")
    message(FATAL_ERROR "${gofs_version_header} has no GOFS_VERSION_${part}")
  endif()
  list(APPEND gofs_version "${CMAKE_MATCH_1}")
endforeach()
list(JOIN gofs_version "." gofs_version)
