// SPDX-License-Identifier: Apache-2.0
#include "path.hpp"

namespace nb = nanobind;

namespace gofs::python {

Path::Path(nb::handle given) : given_(nb::steal(PyOS_FSPath(given.ptr()))) {
  if (!given_.is_valid()) throw nb::python_error();
  PyObject* encoded = nullptr;
  if (PyUnicode_FSConverter(given_.ptr(), &encoded) == 0) throw nb::python_error();
  const auto bytes = nb::steal<nb::bytes>(encoded);
  bytes_.assign(bytes.c_str(), bytes.size());
}

nb::str decoded(const std::string& bytes) {
  PyObject* const text =
      PyUnicode_DecodeFSDefaultAndSize(bytes.data(), static_cast<Py_ssize_t>(bytes.size()));
  if (text == nullptr) throw nb::python_error();
  return nb::steal<nb::str>(text);
}

nb::bytes as_bytes(const std::string& bytes) { return nb::bytes(bytes.data(), bytes.size()); }

}  // namespace gofs::python
