# SPDX-License-Identifier: Apache-2.0
#
# gofs_options: what every target of ours is compiled with. Projects that link GoFS get none of it:
# the libraries that they link (GofsLibrary.cmake) do not link gofs_options.

# Of this folder and those below it; a project that includes GoFS has its own.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CUDA_STANDARD 20)
set(CMAKE_CUDA_STANDARD_REQUIRED ON)
set(CMAKE_CUDA_EXTENSIONS OFF)
if(GOFS_CUDA AND NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
  # CMake 3.25 (Debian 12) does not know yet that nvcc has C++20.
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
endif()
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

if(PROJECT_IS_TOP_LEVEL)
  # Asserts stay on in release: no NDEBUG. -g1 gives sanitizers and profilers their line numbers.
  set(CMAKE_CXX_FLAGS_RELEASE "-O2 -g1")
  set(CMAKE_CUDA_FLAGS_RELEASE "-O3")
  if(GOFS_LINE_INFO)
    string(APPEND CMAKE_CUDA_FLAGS_RELEASE " -lineinfo")
  endif()
  if(GOFS_FAST_BUILD)
    set(CMAKE_CUDA_FLAGS_RELEASE "-O1 -Ofc=max")
  endif()
  # What each sanitizer costs least with, compiling and running together: to optimise what ASan and
  # UBSan add takes four times as long as the rest of compiling.
  if(GOFS_SANITIZE)
    set(CMAKE_CXX_FLAGS_RELEASE "-O0 -g1")
  endif()
endif()

# gofs_optimize(TARGET...): these make and read whole images, and are optimised all the same.
function(gofs_optimize)
  foreach(target IN LISTS ARGN)
    if(GOFS_SANITIZE)
      # Inlined into each other, they are much more for what the sanitizers add.
      target_compile_options(${target} PRIVATE -O1 -fno-inline)
    endif()
  endforeach()
endfunction()

# gofs_compile_together(TARGET...): nearly all of the file system is templates, and files compiled
# together share what they use of them, which saves up to two thirds of the time. So it is done
# where a build is there to be tested; names in a folder's files must differ.
function(gofs_compile_together)
  foreach(target IN LISTS ARGN)
    if(GOFS_SANITIZE OR GOFS_FAST_BUILD)
      set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 12)
    endif()
  endforeach()
endfunction()

# gofs_hide_folders(TARGET...): these are installed, so they name files (__FILE__, debug
# information) from the root of the tree on, and do not say where that was.
function(gofs_hide_folders)
  set(maps
    "-ffile-prefix-map=${PROJECT_BINARY_DIR}=build"
    "-ffile-prefix-map=${PROJECT_SOURCE_DIR}=."
    "-ffile-prefix-map=${GOFS_CCCL_INCLUDE}=cccl")
  foreach(target IN LISTS ARGN)
    foreach(map IN LISTS maps)
      target_compile_options(${target} PRIVATE
        $<$<COMPILE_LANGUAGE:CXX>:${map}> $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=${map}>)
    endforeach()
  endforeach()
endfunction()

add_library(gofs_options INTERFACE)
target_include_directories(gofs_options INTERFACE
  "${PROJECT_SOURCE_DIR}/src" "${PROJECT_SOURCE_DIR}/include")
target_link_libraries(gofs_options INTERFACE gofs_cccl)
find_package(Threads REQUIRED)
target_link_libraries(gofs_options INTERFACE Threads::Threads)

# clang counts sign changes under -Wconversion, g++ does not; g++ is the one that has to be pleased.
target_compile_options(gofs_options INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion
    -Wnon-virtual-dtor>
  # The host pass of nvcc reads text in which system headers are no longer marked as such, so it
  # takes only the warnings that those headers survive. g++ sees our lines with all of them anyway.
  # -Wpedantic rejects nvcc's own line markers.
  $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra
    --expt-relaxed-constexpr -Xcudafe=--display_error_number>)
if(GOFS_WERROR)
  target_compile_options(gofs_options INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-Werror>
    $<$<COMPILE_LANGUAGE:CUDA>:-Werror=all-warnings>)
endif()

if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 13)
  # g++ 13 sees accesses out of bounds inside fmt 9's headers, and references to what is gone, that
  # are none; ASan finds real ones.
  target_compile_options(gofs_options INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-Wno-array-bounds -Wno-stringop-overflow -Wno-dangling-reference>)
endif()

if(GOFS_DEBUG_CHECKS)
  target_compile_definitions(gofs_options INTERFACE GOFS_DEBUG_CHECKS=1)
endif()

if(GOFS_SANITIZE)
  # TSan needs to see every access where it happens; ASan reports are unreadable without frames.
  target_compile_options(gofs_options INTERFACE
    -fsanitize=${GOFS_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(gofs_options INTERFACE -fsanitize=${GOFS_SANITIZE})
endif()
if(GOFS_SANITIZE MATCHES "address")
  # ASan tells what becomes of such pointers; to look at each before makes compiling half as long
  # again.
  target_compile_options(gofs_options INTERFACE -fno-sanitize=null,object-size,vptr)
endif()

if(GOFS_SANITIZE AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # The checks that a sanitizer adds keep g++ from seeing that values inside <functional> are set.
  target_compile_options(gofs_options INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-Wno-maybe-uninitialized>)
endif()
