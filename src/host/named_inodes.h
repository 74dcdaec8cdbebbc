// SPDX-License-Identifier: Apache-2.0
//
// Inodes of any volume, by path and by the calls that all programs have: permissions are asked, and
// paths have their greatest length.
#pragma once

#include "host/inodes.h"

namespace gofs::host {

class NamedInodes final : public Inodes {
 public:
  explicit NamedInodes(AnyVolume& volume) : volume_(volume) {}

  /// `parent` is where the entry was met: no path leads to a directory that has its place
  /// elsewhere.
  Answers ask_stats(const Entries& entries, bool parents) override;
  Answers ask_targets(const Entries& links) override;
  Answers ask_xattrs(const Entries& entries) override;
  void name(const TreeEntry& entry, CallRequest& request) override;
  void name_in_directory(const TreeEntry& entry, CallRequest& request) override;
  CallRequest opening(const TreeEntry& entry) override;

 private:
  Answers results_of(const std::vector<CallRequest>& requests);

  AnyVolume& volume_;
};

}  // namespace gofs::host
