# SPDX-License-Identifier: Apache-2.0
#
# gofs_add_layer(NAME [SOURCES file...] [DEPENDS target...])
#   The target gofs_NAME of the folder src/NAME: header-only without SOURCES, static with them.
#   DEPENDS names the layer directly below, plus outside libraries.
#   A static one becomes part of libgofs (GofsLibrary.cmake), unless it stands above it.
set_property(GLOBAL PROPERTY GOFS_LIBRARY_PARTS)

# gofs_add_library_part(TARGET): this static library becomes part of libgofs.
function(gofs_add_library_part target)
  set_property(GLOBAL APPEND PROPERTY GOFS_LIBRARY_PARTS ${target})
  set_target_properties(${target} PROPERTIES
    CXX_VISIBILITY_PRESET hidden
    CUDA_VISIBILITY_PRESET hidden
    VISIBILITY_INLINES_HIDDEN ON
    INTERPROCEDURAL_OPTIMIZATION OFF)
  # `ld -r` takes machine code.
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-fno-lto>)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")  # objcopy makes no "unique" symbol local
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-fno-gnu-unique>
      $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-fno-gnu-unique>)
  endif()
endfunction()

function(gofs_add_layer name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;DEPENDS")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "gofs_add_layer(${name}): unknown argument ${arg_UNPARSED_ARGUMENTS}")
  endif()
  if(arg_SOURCES)
    add_library(gofs_${name} STATIC ${arg_SOURCES})
    target_link_libraries(gofs_${name} PUBLIC gofs_options ${arg_DEPENDS})
    gofs_compile_together(gofs_${name})
    gofs_hide_folders(gofs_${name})
    if(NOT name MATCHES "^(cli|bench|testing)$")
      gofs_add_library_part(gofs_${name})
    endif()
  else()
    add_library(gofs_${name} INTERFACE)
    target_link_libraries(gofs_${name} INTERFACE gofs_options ${arg_DEPENDS})
  endif()
endfunction()
