// SPDX-License-Identifier: Apache-2.0
//
// Gives an object of the host what its original on the volume has: owner (as root), extended
// attributes, mode and times.
#pragma once

#include <functional>
#include <string>

#include "host/tree.h"

namespace gofs::cli {

/// An open object of the host.
struct HostObject {
  int descriptor;
  bool path_only;    // O_PATH
  bool is_new;       // made by this command
  std::string path;  // for messages
};

class HostAttributes {
 public:
  struct Listener {
    /// Something is not as it was; the command has failed.
    std::function<void(const std::string& message)> failed;
    /// An attribute that the host does not take.
    std::function<void(const std::string& message)> warned;
  };

  explicit HostAttributes(Listener listener) : listener_(std::move(listener)) {}

  /// In the order in which they do not undo each other: a new owner costs a file its capabilities,
  /// and an access list its mode. Set-user-ID, set-group-ID and capabilities are left out where the
  /// owner or the group is another one; where the access list is left out, the group gets no more
  /// than that gave it. A new object keeps no access list that it got from its directory. Throws
  /// ObjectFailure.
  void restore(const HostObject& object, const host::TreeEntry& entry);

 private:
  bool restore_owner(const HostObject& object, const Stat& stat);
  uint32_t restore_xattrs(const HostObject& object, const host::TreeEntry& entry, bool is_owned);
  bool restore_xattr(const HostObject& object, const host::ExtendedAttribute& xattr);

  const Listener listener_;
  bool told_unsupported_ = false;
};

}  // namespace gofs::cli
