// SPDX-License-Identifier: Apache-2.0
//
// Calls of a session that go the way of a server's clients: through a channel for each user who
// makes some. Descriptors are the mount's all the same: the calls of several users share them.
#pragma once

#include <cstdint>
#include <memory>

#include "request/request.h"
#include "vfs/filesystem.h"

namespace gofs::judges {

class ServedCalls {
 public:
  explicit ServedCalls(vfs::Filesystem& fs);
  ~ServedCalls();
  ServedCalls(const ServedCalls&) = delete;
  ServedCalls& operator=(const ServedCalls&) = delete;

  /// From any thread.
  int64_t perform(const vfs::Credentials& who, const request::Arguments& call);

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace gofs::judges
