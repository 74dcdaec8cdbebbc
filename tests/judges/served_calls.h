// SPDX-License-Identifier: Apache-2.0
//
// Calls of a session that go the way of a server's clients: through a channel for each user who
// makes some, and another for the user's kernels (served_kernels.h). Where there are several users,
// descriptors are the mount's all the same: their calls share them.
#pragma once

#include <cstdint>
#include <memory>

#include "request/request.h"
#include "serve/kernel_channel.h"
#include "vfs/filesystem.h"

namespace gofs::judges {

class ServedCalls {
 public:
  struct Options {
    uint64_t kernel_part_bytes;  // what a call of kernels takes at most
    bool one_user;               // whose descriptors are its own
  };
  ServedCalls(vfs::Filesystem& fs, const Options& options);
  ~ServedCalls();
  ServedCalls(const ServedCalls&) = delete;
  ServedCalls& operator=(const ServedCalls&) = delete;

  /// From any thread.
  int64_t perform(const vfs::Credentials& who, const request::Arguments& call);
  serve::KernelChannel& channel_of_kernels(const vfs::Credentials& who);

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace gofs::judges
