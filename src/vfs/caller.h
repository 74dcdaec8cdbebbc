// SPDX-License-Identifier: Apache-2.0
//
// Who makes a call. A warp works for the mount, unless it is a CallerWarp, which works for a
// client: one of several programs that share a mounted volume, each of its own user. Every call
// takes a warp and passes it on, so whatever it comes to do is done for the same caller, and calls
// for the mount cost nothing more.
//
// Descriptors, tickets and batches belong to the client that has got them; to all others they are
// as if they were not open. Inodes by number are for the mount alone, since no search permission is
// asked on the way to them; by identity (identity.h) they are for user 0, of whichever client. What
// is known of whole paths is known for one client.
#pragma once

#include "vfs/filesystem.h"

namespace gofs::vfs {

/// A client and its credentials, which stay as they are until close_all() (clients.h) was called
/// for it: then the number may go to another. The mount's own number may come with any.
struct Caller {
  Credentials credentials;
  uint32_t client;  // 1 to kClientsMax, or kMountClient
};

/// A warp that works for `caller`, which outlives it. Uniform.
template <simt::AnyWarp Lanes>
class CallerWarp : public Lanes {
 public:
  GOFS_HD CallerWarp(const Lanes& lanes, const Caller& caller) : Lanes(lanes), caller_(&caller) {}

  GOFS_HD const Caller& caller() const { return *caller_; }

 private:
  const Caller* caller_;
};

template <typename T>
concept HasCaller = requires(const T& warp) { warp.caller(); };

/// With whose credentials `warp` works. The only place that looks at those of the mount.
GOFS_HD inline const Credentials& credentials_of(const simt::AnyWarp auto& warp,
                                                 const Filesystem& fs) {
  if constexpr (HasCaller<decltype(warp)>) {
    return warp.caller().credentials;
  } else {
    return fs.credentials;
  }
}

/// For which client.
GOFS_HD inline uint32_t client_of(const simt::AnyWarp auto& warp) {
  if constexpr (HasCaller<decltype(warp)>) {
    return warp.caller().client;
  } else {
    return kMountClient;
  }
}

/// Whether what is known of whole paths may be used, and added to: it is known for a client. The
/// mount is none whose credentials stay as they are, where it has others.
GOFS_HD inline bool keeps_paths(const simt::AnyWarp auto& warp) {
  return !HasCaller<decltype(warp)> || client_of(warp) != kMountClient;
}

/// 0, or -EPERM: inodes by number are not for this caller.
GOFS_HD inline int may_use_numbers(const simt::AnyWarp auto& warp) {
  return client_of(warp) == kMountClient ? 0 : -EPERM;
}

/// Warps that do one thing together for `caller`: each member of `Group` has one of them.
template <typename Group>
class CallerGroup : public Group {
 public:
  GOFS_HD CallerGroup(const Group& group, const Caller& caller) : Group(group), caller_(&caller) {}

  GOFS_HD auto warp() const { return CallerWarp(Group::warp(), *caller_); }

 private:
  const Caller* caller_;
};

}  // namespace gofs::vfs
