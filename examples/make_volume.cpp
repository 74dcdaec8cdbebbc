// SPDX-License-Identifier: Apache-2.0
//
// Makes a volume that holds a folder of the host, for the other examples to read: its directories,
// files and symbolic links. (`gofs mkfs` and `gofs put -r` do the same, with owners and times.)
//
//   make_volume IMAGE FOLDER
#include <fcntl.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "gofs/mkfs.hpp"
#include "gofs/volume.hpp"

namespace {

namespace fs = std::filesystem;

constexpr uint64_t kVolumeBytes = uint64_t{256} << 20;  // a sparse file

void put_file(gofs::Volume& volume, const fs::path& from, const std::string& to) {
  std::ifstream in(from, std::ios::binary);
  if (!in) throw std::runtime_error(from.string() + ": cannot be opened");
  const int file = volume.open(to, O_WRONLY | O_CREAT).value();
  std::vector<char> buffer(1 << 20);
  do {
    in.read(buffer.data(), static_cast<std::streamsize>(buffer.size()));
    const auto got = static_cast<uint64_t>(in.gcount());
    if (volume.write(file, buffer.data(), got).value() != got) {
      throw std::runtime_error(to + ": the volume is full");
    }
  } while (in);
  if (!in.eof()) throw std::runtime_error(from.string() + ": cannot be read");
  volume.close(file).value();
}

void put_folder(gofs::Volume& volume, const fs::path& folder) {
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
    const std::string to = "/" + fs::relative(entry.path(), folder).string();
    if (entry.is_symlink()) {
      volume.symlink(fs::read_symlink(entry.path()).string(), to).value();
    } else if (entry.is_directory()) {
      volume.mkdir(to).value();
    } else if (entry.is_regular_file()) {
      put_file(volume, entry.path(), to);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: %s IMAGE FOLDER\n", argv[0]);
    return 2;
  }
  try {
    gofs::MkfsOptions format;
    format.size_bytes = kVolumeBytes;
    format.label = "example";
    format.overwrite = true;
    gofs::mkfs(argv[1], format).value();
    gofs::MountOptions options;
    options.read_only = false;
    gofs::Volume volume = gofs::Volume::mount(argv[1], options).value();
    put_folder(volume, argv[2]);
    volume.unmount().value();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "make_volume: %s\n", error.what());
    return 1;
  }
  return 0;
}
