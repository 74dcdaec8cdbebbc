// SPDX-License-Identifier: Apache-2.0
#include "open_file.hpp"

#include <mutex>

namespace nb = nanobind;

namespace gofs::python {

OpenFile::OpenFile(std::shared_ptr<MountedVolume> volume, int descriptor, Path path)
    : volume_(std::move(volume)), path_(std::move(path)), descriptor_(descriptor) {}

OpenFile::~OpenFile() {
  if (closed_ || volume_->is_closed() || !volume_->is_ours()) return;
  (void)volume_->call([&](Volume& volume) { return volume.close(descriptor_); });
}

void OpenFile::close() {
  // No call begins any more, so that those under way come to an end.
  if (closed_.exchange(true) || volume_->is_closed() || !volume_->is_ours()) return;
  take(volume_->call([&](Volume& volume) {
    const std::unique_lock lock(mutex_);
    return volume.close(descriptor_);
  }),
       &path_);
}

void OpenFile::raise_closed() { throw nb::value_error("I/O operation on closed file"); }

}  // namespace gofs::python
