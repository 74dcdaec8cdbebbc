// SPDX-License-Identifier: Apache-2.0
#include "mounted_volume.hpp"

#include <unistd.h>

#include <string>

namespace nb = nanobind;

namespace gofs::python {

namespace {

[[noreturn]] void raise_about(PyObject* type, const Path& name, const char* words) {
  const nb::object message = decoded(name.bytes() + ": " + words);
  PyErr_SetObject(type, message.ptr());
  throw nb::python_error();
}

}  // namespace

MountedVolume::MountedVolume(Volume volume, Path name, bool is_attached)
    : volume_(std::move(volume)),
      name_(std::move(name)),
      is_on_gpu_(!is_attached && volume_.info().backend == "cuda"),
      owner_(::getpid()) {}

MountedVolume::~MountedVolume() {
  if (closed_ || !is_ours()) return;
  const nb::gil_scoped_release released;
  (void)volume_.unmount();
}

bool MountedVolume::is_ours() const { return ::getpid() == owner_; }

void MountedVolume::refuse_unusable() const {
  if (!is_ours()) {
    raise_about(PyExc_RuntimeError, name_,
                "the volume was mounted before fork(), and only that process can use it: mount it "
                "again in this one, or start workers by spawn, or use none (num_workers=0)");
  }
  if (closed_) raise_about(PyExc_ValueError, name_, "the volume is closed: mount it again");
}

void MountedVolume::close() {
  if (closed_ || !is_ours()) return;
  take(call([](Volume& volume) { return volume.unmount(); }), &name_);
  closed_ = true;
}

}  // namespace gofs::python
