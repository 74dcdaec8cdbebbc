# SPDX-License-Identifier: Apache-2.0
#
# gofs::cuda_runtime: CUDA's static runtime, which libgofs.a needs. Not CMake's CUDA::cudart_static,
# since FindCUDAToolkit does not know the toolkit of the Python wheels. Installed beside
# gofs-config.cmake, too.
if(TARGET gofs::cuda_runtime)
  return()
endif()
find_package(CUDAToolkit QUIET)
find_library(GOFS_CUDA_RUNTIME NAMES cudart_static
  HINTS ${CMAKE_CUDA_IMPLICIT_LINK_DIRECTORIES} ${CUDAToolkit_LIBRARY_DIR}
  PATHS /usr/local/cuda/lib64 /usr/local/cuda/lib
  DOC "CUDA's static runtime library")
if(GOFS_CUDA_RUNTIME)
  add_library(gofs::cuda_runtime INTERFACE IMPORTED GLOBAL)
  set_target_properties(gofs::cuda_runtime PROPERTIES INTERFACE_LINK_LIBRARIES
    "${GOFS_CUDA_RUNTIME};pthread;${CMAKE_DL_LIBS};rt")
endif()
