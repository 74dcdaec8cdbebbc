// SPDX-License-Identifier: Apache-2.0
//
// What a client has of one server; when that has ended, there is another one.
#pragma once

#include <sys/socket.h>

#include <atomic>
#include <map>
#include <memory>
#include <utility>

#include "host/serve/attached_volume.h"
#include "host/serve/control.h"
#include "host/serve/kernel_end.h"
#include "host/serve/socket.h"
#include "host/serve/unsynced_changes.h"
#include "serve/descriptor_base.h"

namespace gofs::host {

struct AttachedVolume::Link {
  Link(uint64_t number, ChannelEnds ends)
      : descriptor_base(serve::descriptor_base(number)), channel(std::move(ends)) {}
  /// To close the connection is not enough: a child of fork() may have a copy of it.
  ~Link() { (void)::shutdown(channel.connection().get(), SHUT_RDWR); }

  const int descriptor_base;
  ChannelClient channel;
  const bool server_is_trusted = is_trusted_peer(channel.connection());
  UnsyncedChanges changes;  // but those of kernels
  ControlLine line{channel.connection()};
  std::unique_ptr<KernelEnd> kernels;  // by the holder of AttachedVolume's mutex
  // Of each buffer that is registered, by its memory, the window; number 0 where the server does
  // not reach it. By the holder of AttachedVolume's opening_.
  std::map<const void*, WindowOfClient> windows;
  std::atomic<uint64_t> windows_as_of{0};  // RegisteredBuffers::added()

  /// Whether the server's end may have taken something with it.
  bool may_lose() const { return changes.any() || kernels != nullptr; }
};

}  // namespace gofs::host
