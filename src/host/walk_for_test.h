// SPDX-License-Identifier: Apache-2.0
//
// For tests only: a volume of many empty files, and a walk of all of it by names, one file after
// the other, as a program does that knows nothing of GoFS's tables.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "gofs/volume.hpp"
#include "host/image/image_builder.h"

namespace gofs::host {

struct ManyFiles {
  uint32_t directories;
  uint32_t files_each;

  uint64_t count() const { return uint64_t{directories} * files_each; }
  /// Of a volume that holds them: an inode and a name each, and some room.
  uint64_t volume_bytes() const {
    constexpr uint64_t kMebibyteBytes = uint64_t{1} << 20;
    return (count() / 4 * 5 * kBlockBytes / kMebibyteBytes + 128) / 2 * 2 * kMebibyteBytes;
  }
};

/// Makes the image `path`. Throws std::runtime_error.
inline void make_many_files(const std::string& path, const ManyFiles& many) {
  const auto must = [](const image::Status& status) {
    if (!status.ok()) throw std::runtime_error("a volume of many files: " + status.message);
  };
  std::unique_ptr<image::ImageTarget> target;
  must(image::open_file_target(path, many.volume_bytes(), &target));
  image::VolumeOptions options;
  options.seed = 1;
  options.overwrite = true;
  options.flush = false;
  std::unique_ptr<image::ImageBuilder> builder;
  must(image::ImageBuilder::create(*target, options, &builder));
  for (uint32_t d = 0; d < many.directories; ++d) {
    image::Directory directory;
    must(builder->add_directory(builder->root(), "d" + std::to_string(d), {}, {}, &directory));
    for (uint32_t i = 0; i < many.files_each; ++i) {
      const std::string name = "file-" + std::to_string(i);
      image::FileSpec file;
      file.name = name;
      must(builder->add_file(directory, file));
    }
  }
  must(builder->finish());
}

/// What a walk has met.
struct WalkOfTree {
  uint64_t directories = 0;
  uint64_t files = 0;
  uint64_t ino_sum = 0;     // of the files, as readdir gives them
  uint64_t stat_sum = 0;    // the same, as stat does
  uint64_t most_bytes = 0;  // of memory that the file system had allocated at a time
  std::string problem;      // the first one, which ends the walk
};

/// Lists each directory below the root, and asks for the stat of each name in it.
inline WalkOfTree walk_by_names(Volume& volume) {
  WalkOfTree walked;
  const auto failed = [&walked](const auto& result) {
    if (!result && walked.problem.empty()) walked.problem = result.error().message;
    return !result;
  };
  const auto names_of = [&](const std::string& path) {
    std::vector<DirectoryEntry> all;
    const auto fd = volume.opendir(path);
    if (failed(fd)) return all;
    for (;;) {
      const auto entries = volume.readdir(*fd);
      if (failed(entries) || entries->empty()) break;
      all.insert(all.end(), entries->begin(), entries->end());
    }
    failed(volume.close(*fd));
    return all;
  };
  for (const DirectoryEntry& directory : names_of("/")) {
    const std::string path = "/" + directory.name;
    ++walked.directories;
    for (const DirectoryEntry& entry : names_of(path)) {
      const auto stat = volume.stat(path + "/" + entry.name);
      if (failed(stat)) return walked;
      ++walked.files;
      walked.ino_sum += entry.ino;
      walked.stat_sum += stat->ino;
    }
    const auto memory = volume.memory();
    if (failed(memory)) return walked;
    walked.most_bytes = std::max(walked.most_bytes, memory->filesystem_bytes);
  }
  return walked;
}

}  // namespace gofs::host
