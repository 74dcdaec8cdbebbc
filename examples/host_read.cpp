// SPDX-License-Identifier: Apache-2.0
//
// Reads a volume from a host program: lists a directory, or prints a file.
//
//   host_read VOLUME PATH
//
// VOLUME is an F2FS image or a block device; the operating system need not know of F2FS. Without a
// GPU the same code runs on the CPU. Every call gives a value or an error, which value() throws.
#include <sys/stat.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "gofs/volume.hpp"

namespace {

void list(gofs::Volume& volume, const std::string& path) {
  const int directory = volume.opendir(path).value();
  for (;;) {
    const std::vector<gofs::DirectoryEntry> entries = volume.readdir(directory).value();
    if (entries.empty()) break;
    for (const gofs::DirectoryEntry& entry : entries) {
      const gofs::Stat stat = volume.lstat(path + "/" + entry.name).value();
      std::printf("%12llu  %s\n", static_cast<unsigned long long>(stat.size_bytes),
                  entry.name.c_str());
    }
  }
  volume.close(directory).value();
}

void print(gofs::Volume& volume, const std::string& path) {
  const int file = volume.open(path).value();
  std::vector<char> buffer(1 << 20);
  while (const uint64_t got = volume.read(file, buffer.data(), buffer.size()).value()) {
    if (std::fwrite(buffer.data(), 1, got, stdout) != got) {
      std::perror("host_read: standard output");
      std::exit(1);
    }
  }
  volume.close(file).value();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: %s VOLUME PATH\n", argv[0]);
    return 2;
  }
  const std::string path = argv[2];
  try {
    gofs::MountOptions options;
    options.backend = "auto";  // a GPU if there is one, else the CPU
    gofs::Volume volume = gofs::Volume::mount(argv[1], options).value();
    std::fprintf(stderr, "%s on %s\n", volume.info().ssd.c_str(),
                 volume.info().backend_detail.c_str());
    if (S_ISDIR(volume.stat(path).value().mode)) {
      list(volume, path);
    } else {
      print(volume, path);
    }
    for (const std::string& warning : volume.warnings()) {
      std::fprintf(stderr, "host_read: %s\n", warning.c_str());
    }
  } catch (const gofs::BadExpectedAccess& error) {
    std::fprintf(stderr, "host_read: %s\n", error.what());  // names the path and what went wrong
    return 1;
  }
  return 0;
}
