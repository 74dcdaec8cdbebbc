# SPDX-License-Identifier: Apache-2.0
#
# gofs_use_core_calls(TARGET...): the calls of the file system that these use are compiled once, in
# src/testing/core_calls.cpp, as they are in the library; what is the targets' own is not optimised.
# Of a function that both have, the linker takes the first it sees: that of core_calls.cpp.
if(GOFS_TESTS AND NOT GOFS_CUDA)
  add_library(gofs_core_calls OBJECT EXCLUDE_FROM_ALL
    "${PROJECT_SOURCE_DIR}/src/testing/core_calls.cpp")
  target_link_libraries(gofs_core_calls PRIVATE gofs_options)
  gofs_optimize(gofs_core_calls)

  add_library(gofs_core_calls_first INTERFACE)
  target_link_options(gofs_core_calls_first INTERFACE $<TARGET_OBJECTS:gofs_core_calls>)
  set_target_properties(gofs_core_calls_first PROPERTIES
    INTERFACE_LINK_DEPENDS $<TARGET_OBJECTS:gofs_core_calls>)
endif()

function(gofs_use_core_calls)
  foreach(target IN LISTS ARGN)
    if(TARGET gofs_core_calls AND TARGET ${target})
      target_compile_options(${target} PRIVATE
        -O0 "SHELL:-include \"${PROJECT_SOURCE_DIR}/src/testing/core_calls.hpp\"")
      target_link_libraries(${target} PUBLIC gofs_core_calls_first)
      add_dependencies(${target} gofs_core_calls)
    endif()
  endforeach()
endfunction()
