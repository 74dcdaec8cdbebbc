// SPDX-License-Identifier: Apache-2.0
//
// In the place of cufile.cpp where cufile.h was not found.
#include "cufile.hpp"

namespace gofs::bench {

std::unique_ptr<CufileFile> open_cufile(const StampedFile&, Device&, std::string& why) {
  why = "built without cufile.h";
  return nullptr;
}

}  // namespace gofs::bench
