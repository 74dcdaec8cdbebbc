// SPDX-License-Identifier: Apache-2.0
//
// A volume as Python holds it: its calls run without the GIL, and are refused where there is
// nothing to call any more.
#pragma once

#include <nanobind/nanobind.h>
#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <utility>

#include "errors.hpp"
#include "gofs/volume.hpp"
#include "path.hpp"
#include "released_gil.hpp"

namespace gofs::python {

class MountedVolume {
 public:
  /// `name` is what it was mounted by, or attached to.
  MountedVolume(Volume volume, Path name, bool is_attached);
  MountedVolume(const MountedVolume&) = delete;
  MountedVolume& operator=(const MountedVolume&) = delete;
  /// Unmounts, without the GIL; errors are lost.
  ~MountedVolume();

  const Path& name() const { return name_; }
  /// A GPU of this program has mounted it, and not its CPU, or a server.
  bool is_on_gpu() const { return is_on_gpu_; }
  /// False in a child of fork(), where nothing can be done with it.
  bool is_ours() const;
  /// Or is being closed.
  bool is_closed() const { return closed_ || is_closing_; }

  /// What `body` answers, which is given the volume and runs without the GIL, so that it may touch
  /// nothing of Python's. Raises ValueError once the volume is closed or being closed, and
  /// RuntimeError in a child of fork().
  template <typename Body>
  auto call(Body&& body) {
    enter();
    return without_gil([&] {
      const Leaving leaving{*this};
      return body(volume_);
    });
  }

  /// The error of a call that has answered with `code` alone, in the volume's words. Raises what
  /// call() does.
  Error explain(int code, const Path& path);

  /// Waits while it is being closed; whether it is closed then.
  bool await_closing();
  /// Unmounts after the calls under way; nothing where that was done before, or in a child of
  /// fork(). After an error that leaves the volume mounted, or its image held, it may be called
  /// again.
  void close();

 private:
  /// The end of a call, before it has the GIL again: a thread may never get it.
  struct Leaving {
    ~Leaving() { volume.leave(); }
    MountedVolume& volume;
  };

  void enter();
  void leave();

  Volume volume_;
  const Path name_;
  const bool is_on_gpu_;
  const pid_t owner_;
  std::atomic<uint32_t> calls_ = 0;       // under way; begun with the GIL
  std::atomic<bool> is_closing_ = false;  // changed with the GIL, as is
  std::atomic<bool> closed_ = false;
};

}  // namespace gofs::python
