# SPDX-License-Identifier: Apache-2.0
#
# Finds what the compilers need beyond themselves:
#   ccache       used when it is there;
#   nvcc         (GOFS_CUDA) from $CUDACXX, PATH, /usr/local/cuda, or the wheels that
#                scripts/setup.sh puts under build/toolchain;
#   gofs_cccl    the CCCL headers (cuda::atomic_ref), which the CPU builds use as well;
#   fmt          as a project that includes this one may have it already.

set(GOFS_WHEEL_ROOT "${PROJECT_SOURCE_DIR}/build/toolchain/nvidia/cu13")

find_program(GOFS_CCACHE ccache)
if(GOFS_CCACHE AND PROJECT_IS_TOP_LEVEL)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${GOFS_CCACHE}")
  set(CMAKE_CUDA_COMPILER_LAUNCHER "${GOFS_CCACHE}")
endif()

# The same order of preference as scripts/nvcc.sh.
if(NOT CMAKE_CUDA_COMPILER)
  if(DEFINED ENV{CUDACXX})
    set(gofs_nvcc "$ENV{CUDACXX}")
  else()
    execute_process(
      COMMAND "${PROJECT_SOURCE_DIR}/scripts/nvcc.sh"
      OUTPUT_VARIABLE gofs_nvcc OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  endif()
else()
  set(gofs_nvcc "${CMAKE_CUDA_COMPILER}")
endif()

# Those of the machine's GPUs that the device code can be compiled for; else 90.
function(gofs_find_architectures result)
  execute_process(
    COMMAND nvidia-smi --query-gpu=compute_cap --format=csv,noheader
    OUTPUT_VARIABLE said ERROR_QUIET RESULT_VARIABLE failed)
  set(found "")
  if(failed STREQUAL "0")
    string(REGEX MATCHALL "[0-9]+\\.[0-9]+" found "${said}")
    list(TRANSFORM found REPLACE "\\." "")
    list(FILTER found INCLUDE REGEX "^([89][0-9]|[0-9][0-9][0-9])$")
    list(REMOVE_DUPLICATES found)
  endif()
  if(NOT found)
    set(found 90)
  endif()
  set(${result} "${found}" PARENT_SCOPE)
endfunction()

if(GOFS_CUDA)
  if(NOT gofs_nvcc)
    message(FATAL_ERROR "no nvcc 13.0 or newer: run scripts/setup.sh, or set CUDACXX")
  endif()
  if(NOT CMAKE_CUDA_COMPILER)
    set(CMAKE_CUDA_COMPILER "${gofs_nvcc}" CACHE FILEPATH "CUDA compiler")
  endif()
  if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
    gofs_find_architectures(CMAKE_CUDA_ARCHITECTURES)
  endif()
  set(CMAKE_CUDA_RUNTIME_LIBRARY Static)
  enable_language(CUDA)
  message(STATUS "GoFS: nvcc ${CMAKE_CUDA_COMPILER_VERSION} at ${CMAKE_CUDA_COMPILER}")
endif()

# A toolkit keeps CCCL beside nvcc: include/cccl since 13.0. Debian-style links are resolved first.
set(gofs_cccl_hints "${GOFS_WHEEL_ROOT}/include/cccl")
if(gofs_nvcc)
  file(REAL_PATH "${gofs_nvcc}" gofs_nvcc_real)
  cmake_path(GET gofs_nvcc_real PARENT_PATH gofs_nvcc_bin)
  cmake_path(GET gofs_nvcc_bin PARENT_PATH gofs_nvcc_root)
  list(PREPEND gofs_cccl_hints
    "${gofs_nvcc_root}/include/cccl" "${gofs_nvcc_root}/targets/x86_64-linux/include/cccl")
endif()
find_path(GOFS_CCCL_INCLUDE NAMES cuda/atomic
  HINTS ${gofs_cccl_hints}
  PATHS /usr/local/cuda/include/cccl /usr/local/cuda/targets/x86_64-linux/include/cccl
  NO_DEFAULT_PATH
  DOC "Folder that holds cuda/atomic (CCCL)")
if(NOT GOFS_CCCL_INCLUDE)
  message(FATAL_ERROR "the CCCL headers (cuda/atomic) are missing: run scripts/setup.sh, or set "
    "GOFS_CCCL_INCLUDE to a folder that has them, as a CUDA toolkit and the Python wheel "
    "nvidia-cuda-cccl do")
endif()

add_library(gofs_cccl INTERFACE)
target_include_directories(gofs_cccl SYSTEM INTERFACE
  # nvcc brings its own copy and must not see a second one.
  $<$<COMPILE_LANGUAGE:CXX>:${GOFS_CCCL_INCLUDE}>)

# NVTX names ranges for profilers. It is header-only, and GoFS does without it.
find_path(GOFS_NVTX_INCLUDE NAMES nvtx3/nvToolsExt.h
  HINTS "${GOFS_CCCL_INCLUDE}/.."
  PATHS /usr/local/cuda/include
  NO_DEFAULT_PATH
  DOC "Folder that holds nvtx3/nvToolsExt.h (NVTX)")

if(NOT TARGET fmt::fmt-header-only)
  find_package(fmt REQUIRED)
endif()
