// SPDX-License-Identifier: Apache-2.0
//
// For tests only: a volume that is served at a socket, by threads of the host or by a grid of warps
// as a GPU has it.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "host/serve/control_desk.h"
#include "host/serve/served_volume_for_test.h"
#include "host/serve/socket_server.h"

namespace gofs::host {

class ServingTest : public ServedVolumeTest {
 protected:
  using ServedVolumeTest::ServedVolumeTest;

  static std::unique_ptr<kernels::Backend> make_grid(const std::string&, std::string&) {
    return std::make_unique<BackendForTest>(4);
  }
  void begin_server(const ChannelServerOptions& options = {}) {
    channels_.emplace(served(*volume_), options);
    desk_.emplace(*volume_, *channels_, [] {});
    server_.emplace(*channels_, listening_.descriptor(),
                    [this](const Question& question, const vfs::Credentials& who) {
                      return desk_->answer(question, who);
                    });
  }
  void end_server() {
    server_.reset();
    desk_.reset();
    channels_.reset();
  }

  const std::string path_ = image_.path() + ".socket";
  ListeningSocket listening_{path_, 0600u};
  std::optional<ChannelServer> channels_;
  std::optional<ControlDesk> desk_;
  std::optional<SocketServer> server_;
};

}  // namespace gofs::host
