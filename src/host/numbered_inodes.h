// SPDX-License-Identifier: Apache-2.0
//
// Inodes of a volume that is mounted here, by number: paths of any length are reached, permissions
// of directories are not asked, and all warps of the backend look for many at once.
#pragma once

#include "host/inodes.h"
#include "host/volume_state.h"
#include "kernels/inodes.h"

namespace gofs::host {

class NumberedInodes final : public Inodes {
 public:
  explicit NumberedInodes(VolumeState& volume);

  Answers ask_stats(const Entries& entries, bool parents) override;
  Answers ask_targets(const Entries& links) override;
  Answers ask_xattrs(const Entries& entries) override;
  void name(const TreeEntry& entry, CallRequest& request) override;
  void name_in_directory(const TreeEntry& entry, CallRequest& request) override;
  CallRequest opening(const TreeEntry& entry) override;

 private:
  template <typename Prepare, typename Take>
  Answers ask(const Entries& entries, size_t at_once, Prepare prepare, Take take);

  VolumeState& volume_;
  SharedArray<kernels::InodesParams> params_;
  SharedArray<kernels::InodeQuery> queries_;
  SharedArray<char> targets_;
  SharedArray<uint8_t> xattrs_;
};

}  // namespace gofs::host
