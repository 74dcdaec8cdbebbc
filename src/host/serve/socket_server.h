// SPDX-License-Identifier: Apache-2.0
//
// Takes clients at a socket, each as the user that Linux says it is, passes on what they ask at
// their connections, and ends the channel of each whose connection has ended: a process that is
// killed is noticed so.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "host/serve/channel_server.h"
#include "host/serve/control.h"
#include "host/serve/socket.h"

namespace gofs::host {

class SocketServer {
 public:
  /// Answers questions, from one thread; is_quick() ones from another.
  using AnswerBy = std::function<Answer(const Question& question, const vfs::Credentials& who)>;

  /// `channels` outlives it; others may have the socket as well. Throws std::system_error.
  SocketServer(ChannelServer& channels, const ssd::Descriptor& listening, AnswerBy answer_by);
  ~SocketServer();
  /// The clients go. The connections at which somebody has asked for the end and waits for the
  /// answer. Called once at the most.
  std::vector<ssd::Descriptor> end();
  SocketServer(const SocketServer&) = delete;
  SocketServer& operator=(const SocketServer&) = delete;

 private:
  /// A question under way keeps it.
  struct Connection {
    ssd::Descriptor descriptor;
    vfs::Credentials who;
    std::optional<uint32_t> channel;
    std::atomic<bool> asks{false};
    std::atomic<bool> stops{false};       // it has asked for the end, and waits for it
    std::mutex mutex;                     // of these two
    std::optional<uint32_t> for_kernels;  // its second channel
    bool ended = false;
  };
  /// A client that has gone, or goes, in whose channels calls are under way. It learns that it is
  /// over when they have ended: it uses their memory again then.
  struct Leaving {
    std::optional<uint32_t> for_kernels;
    uint32_t channel;
    std::shared_ptr<Connection> connection;
  };

  struct Asked {
    std::shared_ptr<Connection> by;
    Question question;
    std::vector<ssd::Descriptor> with;
  };

  void end_threads();
  bool answer(Asked asked);
  Answer answer_of(Asked& asked, ssd::Descriptor& memory);
  void run();
  void take_client();
  bool welcome(Connection& connection);
  void hear(uint32_t mark);
  static void hang_up(Connection& connection);
  void end_client(uint32_t mark, bool has_let_go = false);
  bool has_left(Leaving& leaving);
  Answer open_for_kernels(Connection& connection, ssd::Descriptor& memory);
  bool close_for_kernels(Connection& connection);
  Answer open_window(Asked& asked);
  Answer close_window(Connection& connection, uint32_t window);
  void answer_all();
  void tidy_up();

  ChannelServer& channels_;
  ssd::Descriptor listening_;
  ssd::Descriptor stop_;
  Watch events_;  // of the two and the connections, by their descriptors
  const AnswerBy answer_by_;
  // Of the thread:
  std::map<uint32_t, std::shared_ptr<Connection>> connections_;

  std::mutex mutex_;  // of these
  std::condition_variable has_asked_;
  std::deque<Asked> asked_;
  std::condition_variable has_to_tidy_;
  std::vector<Leaving> leaving_;
  bool ring_was_taken_ = true;  // the next client's is to be made
  std::vector<std::shared_ptr<Connection>> stopping_;
  bool ending_ = false;

  std::thread thread_;
  std::thread answering_;
  std::thread tidying_;
};

}  // namespace gofs::host
