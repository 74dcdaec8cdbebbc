// SPDX-License-Identifier: Apache-2.0
//
// How a program that gofsd starts begins: with no signal blocked, in a group of its own, since the
// keeper decides what a Ctrl-C means, and with descriptors at numbers that are known.
#pragma once

#include <spawn.h>

#include "ssd/descriptor.h"

namespace gofs::daemon {

class Beginning {
 public:
  Beginning();
  ~Beginning();
  Beginning(const Beginning&) = delete;
  Beginning& operator=(const Beginning&) = delete;

  /// The program has a copy of `one`, with this number, which no descriptor has that is given
  /// later. Throws std::system_error.
  void give(const ssd::Descriptor& one, int number);

  const posix_spawn_file_actions_t* actions() const { return &actions_; }
  const posix_spawnattr_t* attributes() const { return &attributes_; }

 private:
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

}  // namespace gofs::daemon
