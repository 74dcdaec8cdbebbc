# SPDX-License-Identifier: Apache-2.0
#
# gofs_add_layer(NAME [SOURCES file...] [DEPENDS target...])
#   The target gofs_NAME of the folder src/NAME: header-only without SOURCES, static with them.
#   DEPENDS names the layer directly below, plus outside libraries.
function(gofs_add_layer name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;DEPENDS")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "gofs_add_layer(${name}): unknown argument ${arg_UNPARSED_ARGUMENTS}")
  endif()
  if(arg_SOURCES)
    add_library(gofs_${name} STATIC ${arg_SOURCES})
    target_link_libraries(gofs_${name} PUBLIC gofs_options ${arg_DEPENDS})
    gofs_compile_together(gofs_${name})
  else()
    add_library(gofs_${name} INTERFACE)
    target_link_libraries(gofs_${name} INTERFACE gofs_options ${arg_DEPENDS})
  endif()
endfunction()
