// SPDX-License-Identifier: Apache-2.0
#include "buffer.hpp"

#include <cstring>
#include <string>

namespace nb = nanobind;

namespace gofs::python {

namespace {

std::string class_name(nb::handle object) {
  return nb::cast<std::string>(nb::str(object.type().attr("__name__")));
}

std::string with_article(const std::string& name) {
  const bool is_vowel = !name.empty() && std::strchr("aeiouAEIOU", name.front()) != nullptr;
  return (is_vowel ? "an " : "a ") + name;
}

}  // namespace

Buffer::Buffer(nb::handle given, Access access) {
  const bool writes = access == Access::kWrite;
  if (PyObject_CheckBuffer(given.ptr()) == 0) {
    throw nb::type_error((with_article(class_name(given)) +
                          " has no memory that can be read or written: give bytes, a bytearray, a "
                          "memoryview, an array or a tensor")
                             .c_str());
  }
  // The format is not asked for: numpy has none for some of its types.
  if (PyObject_GetBuffer(given.ptr(), &view_, PyBUF_STRIDES) != 0) throw nb::python_error();
  const char* refusal = nullptr;
  PyObject* type = PyExc_ValueError;
  if (PyBuffer_IsContiguous(&view_, 'C') == 0) {
    refusal = writes ? "the buffer's bytes do not follow each other in C's order: read into a "
                       "contiguous one, and copy it from there"
                     : "the buffer's bytes do not follow each other in C's order: write a "
                       "contiguous copy (numpy.ascontiguousarray)";
  } else if (writes && view_.readonly != 0) {
    type = PyExc_BufferError;
    refusal = "the buffer is read-only: read into a bytearray or an array that can be written to";
  }
  if (refusal == nullptr) return;
  PyBuffer_Release(&view_);
  PyErr_SetString(type, refusal);
  throw nb::python_error();
}

}  // namespace gofs::python
