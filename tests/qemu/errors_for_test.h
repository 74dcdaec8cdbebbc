// SPDX-License-Identifier: Apache-2.0
//
// What an action throws, for tests of what belongs to QEMU.
#pragma once

#include <functional>
#include <string>
#include <system_error>

namespace gofs::ssd {

struct Trouble {
  int error = 0;  // errno; 0: none
  std::string text;
  bool says(const std::string& words) const { return text.find(words) != std::string::npos; }
};

inline Trouble trouble_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const std::system_error& error) {
    return {error.code().value(), error.what()};
  }
  return {};
}

}  // namespace gofs::ssd
