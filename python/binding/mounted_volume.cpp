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
  without_gil([&] { (void)volume_.unmount(); });
}

bool MountedVolume::is_ours() const { return ::getpid() == owner_; }

void MountedVolume::enter() {
  if (!is_ours()) {
    raise_about(PyExc_RuntimeError, name_,
                "the volume was mounted before fork(), and only that process can use it: mount it "
                "again in this one, or start workers by spawn, or use none (num_workers=0)");
  }
  if (is_closed()) raise_about(PyExc_ValueError, name_, "the volume is closed: mount it again");
  ++calls_;
}

void MountedVolume::leave() {
  if (--calls_ == 0) calls_.notify_all();
}

Error MountedVolume::explain(int code, const Path& path) {
  return call([&](Volume& volume) { return volume.explain(code, path.bytes()); });
}

namespace {

/// Says at its end that a close() is over.
class Closing {
 public:
  explicit Closing(std::atomic<bool>& is_closing) : is_closing_(is_closing) {}
  Closing(const Closing&) = delete;
  Closing& operator=(const Closing&) = delete;
  ~Closing() {
    is_closing_ = false;
    is_closing_.notify_all();
  }

 private:
  std::atomic<bool>& is_closing_;
};

}  // namespace

bool MountedVolume::await_closing() {
  while (is_closing_ && is_ours()) without_gil([&] { is_closing_.wait(true); });
  return closed_;
}

void MountedVolume::close() {
  if (!is_ours()) return;
  if (await_closing()) return;  // another thread that closes it may fail
  is_closing_ = true;
  const auto unmount = [&] {
    // Whatever becomes of it, others that wait for it go on.
    const Closing closing(is_closing_);
    auto unmounted = without_gil([&] {
      for (uint32_t left = calls_; left != 0; left = calls_) calls_.wait(left);
      return volume_.unmount();
    });
    closed_ = unmounted.has_value();
    return unmounted;
  };
  take(unmount(), &name_);
}

}  // namespace gofs::python
