// SPDX-License-Identifier: Apache-2.0
//
// gofs._core: the host's calls of GoFS (gofs/volume.hpp, gofs/mkfs.hpp) as Python's, and no more.
// What programs see is the package around it.
#include <nanobind/nanobind.h>

#include "classes.hpp"
#include "gofs/version.h"
#include "path_reads.hpp"

namespace nb = nanobind;

NB_MODULE(_core, module) {
  using namespace gofs::python;
  // What others keep until the process ends, such as fsspec's cache, is no leak of ours.
  nb::set_leak_warnings(false);
  module.doc() = "The host's calls of GoFS. Internal to the package gofs.";
  module.attr("VERSION") = GOFS_VERSION;
  module.attr("FILES_AT_ONCE") = kFilesAtOnce;
  define_reports(module);
  define_open_file(module);
  VolumeClass volume(module, "Volume");
  define_names(volume);
  define_attributes(volume);
  define_whole_files(volume);
  define_many_files(volume);
  define_whole_reads(volume);
  define_ranges(volume);
  define_device_ranges(module, volume);
  define_upkeep(volume);
  define_mounting(module);
}
