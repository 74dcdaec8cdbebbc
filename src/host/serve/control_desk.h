// SPDX-License-Identifier: Apache-2.0
//
// Answers what clients ask a server at their connections (control.h).
#pragma once

#include <functional>

#include "host/serve/channel_server.h"
#include "host/serve/control.h"
#include "host/volume_state.h"

namespace gofs::host {

class ControlDesk {
 public:
  /// What it is about outlives it. `stop` is called where that is asked for, and returns at once.
  ControlDesk(VolumeState& volume, ChannelServer& channels, std::function<void()> stop)
      : volume_(volume), channels_(channels), stop_(std::move(stop)) {}

  /// By one thread at a time; is_quick() ones by any.
  Answer answer(const Question& question, const vfs::Credentials& who);

 private:
  Expected<std::string> find(const Question& question);

  VolumeState& volume_;
  ChannelServer& channels_;
  const std::function<void()> stop_;
};

}  // namespace gofs::host
