// SPDX-License-Identifier: Apache-2.0
//
// gofs/gofs.h: listing directories.
#include "host/c/call.h"

using namespace gofs::host::c;

int gofs_opendir(gofs_volume* volume, const char* path) {
  return call({{"volume", volume}, {"path", path}}, [&] { return volume->volume.opendir(path); });
}

int64_t gofs_readdir(gofs_volume* volume, int fd, gofs_directory_entry_t* entries, uint64_t count) {
  return call({{"volume", volume}, {"entries", entries}}, [&] {
    // One layout (layouts.cpp): what is filled are bytes of the caller's.
    return volume->volume.readdir(fd, reinterpret_cast<gofs::NamedEntry*>(entries), count);
  });
}
