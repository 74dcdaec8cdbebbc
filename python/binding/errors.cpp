// SPDX-License-Identifier: Apache-2.0
#include "errors.hpp"

#include <cerrno>
#include <string>

namespace nb = nanobind;

namespace gofs::python {

namespace {

/// The message without what it is about, which it begins with.
std::string words_of(const Error& error, const Path* path, const Path* other) {
  std::string subjects[3];
  if (path != nullptr) subjects[0] = path->bytes() + ": ";
  if (path != nullptr && other != nullptr) {
    subjects[1] = path->bytes() + " -> " + other->bytes() + ": ";
    subjects[2] = other->bytes() + ": ";
  }
  for (const std::string& subject : subjects) {
    if (!subject.empty() && error.message.compare(0, subject.size(), subject) == 0) {
      return error.message.substr(subject.size());
    }
  }
  return error.message;
}

nb::object type_for(int code) {
  if (code != EUCLEAN) return nb::borrow(PyExc_OSError);
  return nb::module_::import_("gofs._errors").attr("CorruptionError");
}

}  // namespace

nb::object exception_of(const Error& error, const Path* path, const Path* other) {
  nb::list arguments;
  arguments.append(error.code);
  arguments.append(decoded(words_of(error, path, other)));
  if (path != nullptr) arguments.append(path->given());
  if (other != nullptr) {
    arguments.append(nb::none());  // an error of Windows
    arguments.append(other->given());
  }
  return type_for(error.code)(*arguments);
}

void raise(const Error& error, const Path* path, const Path* other) {
  const nb::object exception = exception_of(error, path, other);
  PyErr_SetObject(exception.type().ptr(), exception.ptr());
  throw nb::python_error();
}

}  // namespace gofs::python
