# SPDX-License-Identifier: Apache-2.0
#
# gofs_add_test(NAME source... [LIBRARIES target...] [LABELS label...] [TIMEOUT seconds]
#               [SHARDS count] [ARGS argument...] [SERIAL case...])
#   One GoogleTest binary and one ctest entry, or with SHARDS several, NAME_0 and so on, which share
#   its cases and run side by side. SERIAL names cases, as --gtest_filter does, that take
#   their time and in which nothing happens side by side: ThreadSanitizer is spared them. Labels:
#     cpu       (default for .cpp) runs anywhere: built in every preset but cuda;
#     unit      (default for those in src/, beside what they test) `make test` runs them under
#               sanitizers, `make check` and `make test-long` also as they ship;
#     tsan      also built and run in preset cpu-tsan, which builds nothing else;
#     gpu       (default for .cu) built in preset cuda, run on a GPU by `make gpu-check`; with cpu:
#               in both;
#     sanitize  with gpu: also run under compute-sanitizer;
#     explorer  takes long, and looks at answers: not run under a sanitizer by `make test`;
#     kernel    needs the QEMU guest; run by its own stage of `make test`;
#     long      left out of `make test`.
#
# gofs_add_fuzzer(NAME source... [CORPUS folder] [LIBRARIES target...])
#   LLVMFuzzerTestOneInput in the sources. In preset cpu-asan a libFuzzer binary (with clang), whose
#   LIBRARIES tell it which of their branches were taken; elsewhere a program that replays the
#   corpus, so that old findings stay found under every compiler.

if(GOFS_TESTS)
  find_package(GTest QUIET)
  if(NOT GTest_FOUND)
    if(NOT EXISTS /usr/src/googletest/CMakeLists.txt)
      message(FATAL_ERROR "GoogleTest is missing: run scripts/setup.sh")
    endif()
    add_subdirectory(/usr/src/googletest "${PROJECT_BINARY_DIR}/googletest" EXCLUDE_FROM_ALL SYSTEM)
    if(NOT TARGET GTest::gtest_main)
      add_library(GTest::gtest ALIAS gtest)
      add_library(GTest::gtest_main ALIAS gtest_main)
    endif()
  endif()
endif()

# gofs_teams: src/testing/teams.hpp, warps of several lanes on the CPU. The GPU's tests have real
# ones, so a machine that builds for the GPU needs no Boost.
if(GOFS_TESTS AND NOT GOFS_CUDA)
  find_package(Boost 1.74 CONFIG QUIET COMPONENTS context)
  if(NOT Boost_FOUND)
    message(FATAL_ERROR "Boost.Context is missing: run scripts/setup.sh")
  endif()
  add_library(gofs_teams STATIC EXCLUDE_FROM_ALL "${PROJECT_SOURCE_DIR}/src/testing/teams.cpp")
  target_link_libraries(gofs_teams PUBLIC gofs_options gofs_simt PRIVATE Boost::context)
  gofs_optimize(gofs_teams)
endif()

# Build what ctest runs in this preset, and not the command or the benchmarks: all of it, and some.
add_custom_target(gofs_tests)
add_custom_target(gofs_unit_tests)
add_custom_target(gofs_fuzzers)

# Every gtest binary leaves its cases here, for the sums that scripts/ctest_sum.py prints.
set(GOFS_TEST_RESULTS "${PROJECT_BINARY_DIR}/test-results")

function(gofs_add_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "TIMEOUT;SHARDS" "LIBRARIES;LABELS;ARGS;SERIAL")
  set(sources ${arg_UNPARSED_ARGUMENTS})
  if(NOT sources)
    message(FATAL_ERROR "gofs_add_test(${name}): no sources")
  endif()

  set(labels ${arg_LABELS})
  if(NOT "gpu" IN_LIST labels AND NOT "cpu" IN_LIST labels)
    if("${sources}" MATCHES "\\.cu(;|$)")
      list(APPEND labels gpu)
    else()
      list(APPEND labels cpu)
    endif()
  endif()

  set(layers "${PROJECT_SOURCE_DIR}/src")
  cmake_path(IS_PREFIX layers "${CMAKE_CURRENT_SOURCE_DIR}" is_unit)
  if(is_unit AND NOT "unit" IN_LIST labels AND NOT "explorer" IN_LIST labels)
    list(APPEND labels unit)
  endif()

  # Which preset builds which test: each test is compiled only where it is run.
  set(backend cpu)
  if(GOFS_CUDA)
    set(backend gpu)
  endif()
  if(NOT GOFS_TESTS OR NOT backend IN_LIST labels)
    return()
  elseif(GOFS_SANITIZE STREQUAL "thread" AND NOT "tsan" IN_LIST labels)
    return()
  endif()

  # It is to end a hang, not a slow machine: tests with many threads take many times as long where
  # they share the cores.
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 900)
  endif()

  add_executable(${name} ${sources})
  if(NOT GOFS_CUDA OR GOFS_FAST_BUILD)
    set_target_properties(${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 12)
  endif()
  if(GOFS_SANITIZE STREQUAL "thread" AND arg_SERIAL)
    list(JOIN arg_SERIAL ":" serial)
    list(APPEND arg_ARGS "--gtest_filter=-${serial}")
  endif()
  add_dependencies(gofs_tests ${name})
  if("unit" IN_LIST labels)
    add_dependencies(gofs_unit_tests ${name})
    if(GOFS_FAST_BUILD AND NOT GOFS_CUDA AND NOT GOFS_SANITIZE)
      set_target_properties(${name} PROPERTIES EXCLUDE_FROM_ALL ON)
    endif()
  endif()
  target_link_libraries(${name} PRIVATE gofs_options ${arg_LIBRARIES} GTest::gtest_main)
  if(NOT arg_SHARDS)
    set(arg_SHARDS 1)
  endif()
  math(EXPR last "${arg_SHARDS} - 1")
  foreach(shard RANGE ${last})
    set(part ${name})
    if(arg_SHARDS GREATER 1)
      set(part ${name}_${shard})
    endif()
    add_test(NAME ${part} COMMAND ${name} ${arg_ARGS}
      --gtest_output=xml:${GOFS_TEST_RESULTS}/${part}.xml)
    set(environment "GOFS_SOURCE_DIR=${PROJECT_SOURCE_DIR};GOFS_BUILD_DIR=${PROJECT_BINARY_DIR}"
      "GTEST_TOTAL_SHARDS=${arg_SHARDS};GTEST_SHARD_INDEX=${shard}")
    set_tests_properties(${part} PROPERTIES
      LABELS "${labels}" TIMEOUT ${arg_TIMEOUT} ENVIRONMENT "${environment}")
  endforeach()
endfunction()

function(gofs_add_fuzzer name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "CORPUS;TIMEOUT" "LIBRARIES")
  set(sources ${arg_UNPARSED_ARGUMENTS})
  if(NOT GOFS_TESTS OR GOFS_CUDA OR GOFS_SANITIZE STREQUAL "thread")
    return()
  endif()
  if(arg_CORPUS)
    cmake_path(ABSOLUTE_PATH arg_CORPUS BASE_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}")
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 900)
  endif()

  if(GOFS_SANITIZE AND CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    set(arg_TIMEOUT 86400)  # fuzz_once.sh ends it, after as long as it was told
    add_executable(${name} ${sources})
    foreach(library IN LISTS arg_LIBRARIES)
      target_compile_options(${library} PRIVATE -fsanitize=fuzzer-no-link)
    endforeach()
    target_compile_options(${name} PRIVATE -fsanitize=fuzzer-no-link)
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
    add_test(NAME ${name} COMMAND "${PROJECT_SOURCE_DIR}/scripts/fuzz_once.sh"
      $<TARGET_FILE:${name}> ${arg_CORPUS})
  else()
    add_executable(${name} ${sources} "${PROJECT_SOURCE_DIR}/tests/fuzz_replay_main.cpp")
    add_test(NAME ${name} COMMAND ${name} ${arg_CORPUS})
  endif()
  add_dependencies(gofs_tests ${name})
  add_dependencies(gofs_fuzzers ${name})
  target_link_libraries(${name} PRIVATE gofs_options ${arg_LIBRARIES})
  set_tests_properties(${name} PROPERTIES LABELS "fuzz;cpu" TIMEOUT ${arg_TIMEOUT}
    ENVIRONMENT "GOFS_SOURCE_DIR=${PROJECT_SOURCE_DIR};GOFS_BUILD_DIR=${PROJECT_BINARY_DIR}")
endfunction()
