// SPDX-License-Identifier: Apache-2.0
//
// Waiting without the GIL, also in a thread that the program ends around.
#pragma once

#include <Python.h>
#include <cxxabi.h>
#include <unistd.h>

namespace gofs::python {

/// Gives the GIL back while it lives; nothing of Python's may be touched meanwhile.
///
/// A daemon thread that wants it again while the interpreter ends is ended there by Python (before
/// 3.14), by unwinding its stack. That is no way out of C++: destructors let nothing pass, and
/// those of Python's objects would run without the GIL. The thread stays where it is instead until
/// the process is gone, as Python 3.14 has it.
class ReleasedGil {
 public:
  ReleasedGil() : state_(PyEval_SaveThread()) {}
  ReleasedGil(const ReleasedGil&) = delete;
  ReleasedGil& operator=(const ReleasedGil&) = delete;
  ~ReleasedGil() {
    try {
      PyEval_RestoreThread(state_);
    } catch (const abi::__forced_unwind&) {
      for (;;) ::pause();
    }
  }

 private:
  PyThreadState* const state_;
};

/// What `body` answers, which runs without the GIL.
template <typename Body>
auto without_gil(const Body& body) {
  const ReleasedGil released;
  return body();
}

}  // namespace gofs::python
