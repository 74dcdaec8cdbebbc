# SPDX-License-Identifier: Apache-2.0
#
# All that may be set from outside, as in `cmake -DGOFS_CUDA=ON`. Where another project includes
# GoFS, only the libraries are built unless it asks for more. Besides these, CMake's own:
#   BUILD_SHARED_LIBS   of a project that includes GoFS: gofs::host is the shared library, not the
#                       static one. By itself GoFS builds and installs both.
#   CMAKE_CUDA_ARCHITECTURES   what device code is compiled for, from 80 on; if nothing is
#                       said, what the machine's GPUs have, or 90 where there is none
set(gofs_cuda_by_default OFF)
if(SKBUILD)  # `pip install .` asks what `make build` asks
  execute_process(COMMAND sh -c "scripts/wants_cuda.sh && scripts/nvcc.sh"
    WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}" RESULT_VARIABLE gofs_no_cuda OUTPUT_QUIET ERROR_QUIET)
  if(gofs_no_cuda EQUAL 0)
    set(gofs_cuda_by_default ON)
  endif()
endif()
option(GOFS_CUDA "Build the device code and the CUDA backend; needs nvcc 13.0 or newer"
  ${gofs_cuda_by_default})
option(GOFS_DEVICE_WIDE "Build and install libgofs_device_wide.a as well (src/device)" OFF)
option(GOFS_COMMANDS "Build the commands gofs, gofs-bench and gofsd; needs CLI11 and nlohmann_json"
  ${PROJECT_IS_TOP_LEVEL})
option(GOFS_EXAMPLES "Build the examples" ${PROJECT_IS_TOP_LEVEL})
option(GOFS_BENCH "Build what measures (bench/), beside gofs-bench" ${PROJECT_IS_TOP_LEVEL})
option(GOFS_TESTS "Build the tests, and what they run: the three above; needs GoogleTest and Boost"
  ${PROJECT_IS_TOP_LEVEL})
option(GOFS_PYTHON "Build the module of the Python package; needs nanobind" OFF)
option(GOFS_INSTALL "Have `cmake --install` install GoFS" ${PROJECT_IS_TOP_LEVEL})
option(GOFS_BLKID "Have libblkid name what mkfs would write over, where it is installed" ON)
option(GOFS_URING "Have the threads of hosted SSDs use io_uring, where liburing is installed" ON)
option(GOFS_WERROR "Have a warning end the build of GoFS's own files" ${PROJECT_IS_TOP_LEVEL})

# For work on GoFS itself:
option(GOFS_LINE_INFO "Device code knows its source lines, for profilers; four times as large" OFF)
option(GOFS_BENCH_WIDE "Build gofs-bench with gofs_device_wide instead of gofs_device" OFF)
option(GOFS_FAST_BUILD
  "As CI builds: files together, device code only to see that it compiles, no unit tests by default"
  OFF)
set(GOFS_SANITIZE "" CACHE STRING "Argument of -fsanitize= (address,undefined or thread), or empty")
if(GOFS_SANITIZE)
  set(gofs_checks_by_default ON)
else()
  set(gofs_checks_by_default OFF)
endif()
option(GOFS_DEBUG_CHECKS
  "Check what costs time as well (GOFS_DEBUG_ASSERT); where sanitizers watch, unless told otherwise"
  ${gofs_checks_by_default})

if(GOFS_TESTS)
  set(GOFS_COMMANDS ON)
  set(GOFS_EXAMPLES ON)
  set(GOFS_BENCH ON)
  enable_testing()
endif()
if(GOFS_BENCH)
  set(GOFS_COMMANDS ON)  # they share src/bench
endif()

if(PROJECT_IS_TOP_LEVEL AND NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()
