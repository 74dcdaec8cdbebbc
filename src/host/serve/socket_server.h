// SPDX-License-Identifier: Apache-2.0
//
// Takes clients at a socket, each as the user that Linux says it is, and ends the channel of each
// whose connection has ended: a process that is killed is noticed so.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "host/serve/channel_server.h"

namespace gofs::host {

class SocketServer {
 public:
  /// `channels` outlives it. Throws std::system_error, as listen_at().
  SocketServer(ChannelServer& channels, std::string path, uint32_t mode);
  /// The socket's name goes, and so do the clients.
  ~SocketServer();
  SocketServer(const SocketServer&) = delete;
  SocketServer& operator=(const SocketServer&) = delete;

 private:
  void run();
  void take_client();
  void end_client(uint32_t mark);

  ChannelServer& channels_;
  const std::string path_;
  ssd::Descriptor listening_;
  ssd::Descriptor stop_;
  Watch events_;  // of the two and the connections, by their descriptors
  // Of the thread:
  struct Connection {
    ssd::Descriptor descriptor;
    uint32_t channel;
  };
  std::map<uint32_t, Connection> connections_;
  std::vector<uint32_t> leaving_;  // channels in which calls are under way

  std::thread thread_;
};

}  // namespace gofs::host
