// SPDX-License-Identifier: Apache-2.0
#include "path.hpp"

#include <algorithm>

namespace nb = nanobind;

namespace gofs::python {

namespace {

/// Whether `given` is a str of ASCII alone, whose bytes are the same in all encodings of file
/// names, and without a NUL; then `bytes` is those.
bool is_plain(nb::handle given, std::string& bytes) {
  if (!PyUnicode_CheckExact(given.ptr())) return false;
  Py_ssize_t size = 0;
  const char* const text = PyUnicode_AsUTF8AndSize(given.ptr(), &size);
  if (text == nullptr) {
    PyErr_Clear();  // it has surrogates
    return false;
  }
  const auto is_ascii = [](char each) { return static_cast<signed char>(each) > 0; };
  if (!std::all_of(text, text + size, is_ascii)) return false;
  bytes.assign(text, static_cast<size_t>(size));
  return true;
}

}  // namespace

Path::Path(nb::handle given) : given_(nb::steal(PyOS_FSPath(given.ptr()))) {
  if (!given_.is_valid()) throw nb::python_error();
  PyObject* encoded = nullptr;
  if (PyUnicode_FSConverter(given_.ptr(), &encoded) == 0) throw nb::python_error();
  const auto bytes = nb::steal<nb::bytes>(encoded);
  bytes_.assign(bytes.c_str(), bytes.size());
}

std::vector<std::string> paths_as_bytes(const nb::sequence& paths, size_t first, size_t count) {
  const size_t end = std::min(first + count, nb::len(paths));
  std::vector<std::string> all(end - first);
  for (size_t i = first; i < end; ++i) {
    const nb::object each = paths[i];
    std::string& bytes = all[i - first];
    if (!is_plain(each, bytes)) bytes = Path(each).bytes();
  }
  return all;
}

Path path_at(const nb::sequence& paths, size_t number) {
  const nb::object given = paths[number];
  return Path(given);
}

nb::str decoded(const std::string& bytes) {
  PyObject* const text =
      PyUnicode_DecodeFSDefaultAndSize(bytes.data(), static_cast<Py_ssize_t>(bytes.size()));
  if (text == nullptr) throw nb::python_error();
  return nb::steal<nb::str>(text);
}

nb::bytes as_bytes(const std::string& bytes) { return nb::bytes(bytes.data(), bytes.size()); }

}  // namespace gofs::python
