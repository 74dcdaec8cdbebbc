// SPDX-License-Identifier: Apache-2.0
//
// A descriptor of a mounted volume, which is closed when Python lets go of it.
#pragma once

#include <nanobind/nanobind.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <utility>

#include "errors.hpp"
#include "mounted_volume.hpp"
#include "path.hpp"

namespace gofs::python {

class OpenFile {
 public:
  OpenFile(std::shared_ptr<MountedVolume> volume, int descriptor, Path path);
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  /// Closes; errors are lost.
  ~OpenFile();

  const Path& path() const { return path_; }

  /// Whether it is a file of this very mount.
  bool is_of(const MountedVolume& volume) const { return volume_.get() == &volume; }

  /// Whether both are files of one mount.
  bool is_beside(const OpenFile& other) const { return volume_ == other.volume_; }

  /// What `body` answers, which is given the volume and the descriptor and runs as one of
  /// MountedVolume::call() does. Raises ValueError once the file is closed.
  template <typename Body>
  auto call(Body&& body) {
    auto answer = volume_->call([&](Volume& volume) { return use(volume, body); });
    if (!answer) raise_closed();
    return take(*std::move(answer), &path_);
  }

  /// The same within a call of its volume: without the GIL, and none once the file is closed.
  template <typename Body>
  auto use(Volume& volume, Body&& body) -> std::optional<decltype(body(volume, 0))> {
    // Another thread that closes the file waits, so that no call meets a descriptor that the
    // volume has given to another file since.
    const std::shared_lock lock(mutex_);
    if (closed_) return std::nullopt;
    return body(volume, descriptor_);
  }

  /// Keeps the file open as long as `lock`, within a call of its volume; by one lock of a thread.
  /// False once it is closed.
  bool keep_open(std::shared_lock<std::shared_mutex>& lock) {
    lock = std::shared_lock(mutex_);
    return !closed_;
  }
  int descriptor() const { return descriptor_; }

  [[noreturn]] static void raise_closed();

  /// Is closed from now on, within a call of its volume, for the caller to close the descriptor.
  /// None: it was closed before.
  std::optional<int> give_up() {
    if (closed_.exchange(true)) return std::nullopt;
    const std::unique_lock lock(mutex_);  // after the calls under way
    return descriptor_;
  }

  /// Closes after the calls under way. Nothing where that was done before, where the volume is
  /// closed, or in a child of fork().
  void close();

 private:
  const std::shared_ptr<MountedVolume> volume_;
  const Path path_;
  const int descriptor_;
  std::atomic<bool> closed_ = false;
  std::shared_mutex mutex_;
};

}  // namespace gofs::python
