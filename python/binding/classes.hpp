// SPDX-License-Identifier: Apache-2.0
//
// The parts of the module gofs._core, each in a file of its name.
#pragma once

#include <nanobind/nanobind.h>

#include "mounted_volume.hpp"

namespace gofs::python {

class OpenFile;
using OpenFileClass = nanobind::class_<OpenFile>;
using VolumeClass = nanobind::class_<MountedVolume>;

void define_reports(nanobind::module_& module);    // what volumes say of themselves
void define_open_file(nanobind::module_& module);  // class OpenFile
void define_rows(OpenFileClass& file);             // ranges of one size
void define_mounting(nanobind::module_& module);   // mount(), attach(), mkfs()
void define_names(VolumeClass& volume);            // calls about paths
void define_attributes(VolumeClass& volume);       // owners, times, extended attributes
void define_whole_files(VolumeClass& volume);      // writing at once
void define_many_files(VolumeClass& volume);       // many at once
void define_whole_reads(VolumeClass& volume);      // all of many files
void define_ranges(VolumeClass& volume);           // reading of many at once
void define_device_ranges(nanobind::module_& module, VolumeClass& volume);  // a GPU's memory
void define_upkeep(VolumeClass& volume);  // of the volume as a whole

}  // namespace gofs::python
