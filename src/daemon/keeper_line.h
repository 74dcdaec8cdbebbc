// SPDX-License-Identifier: Apache-2.0
//
// What a worker says to its keeper, over a connection of theirs: a byte each.
#pragma once

#include <sys/socket.h>

#include "ssd/descriptor.h"

namespace gofs::daemon {

enum class Word : char {
  kServing = 1,  // the volume is mounted, and clients are taken
  kAlive = 2,    // heart.h
  kEnding = 3,   // a client has asked for the end, however that turns out
};

/// Waits for nobody: a keeper that is stopped misses words. False: it was not said.
inline bool tell_keeper(const ssd::Descriptor& keeper, Word word) {
  return ::send(keeper.get(), &word, 1, MSG_NOSIGNAL | MSG_DONTWAIT) == 1;
}

}  // namespace gofs::daemon
