// SPDX-License-Identifier: Apache-2.0
//
// The same inside a volume as host_entry.h on the host: what comes to stand there wholly or not at
// all. No other process changes the volume meanwhile, so paths will do.
#pragma once

#include <functional>
#include <string>

#include "gofs/volume.hpp"

namespace gofs::cli {

/// The end of the links that `path` is; itself, if it is none. Throws ObjectFailure where they lead
/// to nothing.
std::string end_of_links(Volume& volume, const std::string& path);

/// Throws ObjectFailure if `path` is what a regular file does not take the place of.
void look_at_place_of_file(Volume& volume, const std::string& path);

/// Has `make` make `path`, in place of what is there, unless that is a directory. Throws
/// ObjectFailure.
void make_in_place(Volume& volume, const std::string& path,
                   const std::function<Expected<void>(const std::string& path)>& make);

/// A regular file that is written under a hidden name, and then takes its place.
class NewVolumeFile {
 public:
  /// Throws ObjectFailure, as do the others.
  NewVolumeFile(Volume& volume, const std::string& path);
  ~NewVolumeFile();
  NewVolumeFile(const NewVolumeFile&) = delete;
  NewVolumeFile& operator=(const NewVolumeFile&) = delete;

  int descriptor() const { return descriptor_; }
  void write(const uint8_t* data, uint64_t bytes, uint64_t offset);
  void finish(uint64_t bytes);
  void place();

 private:
  Volume& volume_;
  const std::string path_;
  const std::string hidden_;
  int descriptor_ = -1;
  bool is_placed_ = false;
};

}  // namespace gofs::cli
