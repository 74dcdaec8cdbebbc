// SPDX-License-Identifier: Apache-2.0
//
// gofs ctl SOCKET status|drain|stop: asks a server (gofsd) how it is, or to end.
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/types.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>
#include <thread>

#include "cli/commands.h"
#include "cli/output.h"
#include "cli/text.h"
#include "host/serve/control.h"
#include "host/serve/socket.h"

namespace gofs::cli {
namespace {

void print_json(const host::ServerStatus& status) {
  nlohmann::ordered_json clients = nlohmann::ordered_json::array();
  for (const host::ClientStatus& client : status.clients) {
    clients.push_back({{"channel", client.channel},
                       {"pid", client.pid},
                       {"uid", client.uid},
                       {"gid", client.gid},
                       {"calls", client.calls},
                       {"leaving", client.leaving},
                       {"registered_bytes", client.window_bytes}});
  }
  const nlohmann::ordered_json object = {
      {"volume", is_utf8(status.volume) ? status.volume : escaped(status.volume)},
      {"pid", status.pid},
      {"threads", status.threads},
      {"draining", status.draining},
      {"clients", clients}};
  print(object.dump(2) + "\n");
}

void print_table(const host::ServerStatus& status) {
  print(fmt::format("{:<8} {}\n", "volume", escaped(status.volume)));
  print(fmt::format("{:<8} process {}, {} threads{}\n", "server", status.pid, status.threads,
                    status.draining ? ", takes no more clients" : ""));
  print(fmt::format("{:<8} {}\n", "clients", status.clients.size()));
  for (const host::ClientStatus& client : status.clients) {
    const std::string registered = client.window_bytes == 0
                                       ? std::string()
                                       : ", " + size_text(client.window_bytes) + " registered";
    print(fmt::format("  process {:>7}, uid {:>5}, gid {:>5}: {} calls{}{}\n", client.pid,
                      client.uid, client.gid, client.calls, registered,
                      client.leaving ? ", has gone" : ""));
  }
}

/// What a name belongs to: the number of an inode alone may be another's soon after.
struct Socket {
  dev_t device;
  ino_t inode;
  int64_t seconds;  // and nanoseconds, when its inode was changed last
  int64_t nanoseconds;

  bool operator==(const Socket&) const = default;
};

/// All are 0: there is none.
Socket socket_at(const std::string& name) {
  struct stat status {};
  if (::stat(name.c_str(), &status) != 0) return {};
  return {status.st_dev, status.st_ino, status.st_ctim.tv_sec, status.st_ctim.tv_nsec};
}

/// A server that has ended lets go of its volume, and then of its name, just after it has said so;
/// one that a program has for itself keeps the name, perhaps.
void wait_until_name_is_free(const std::string& name, const Socket& server) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::seconds kTimeout{5};
  constexpr std::chrono::milliseconds kPause{1};
  const Clock::time_point deadline = Clock::now() + kTimeout;
  while (socket_at(name) == server && Clock::now() < deadline) std::this_thread::sleep_for(kPause);
}

void ask(const Session& session, const CtlOptions& options) {
  const Socket server = socket_at(session.volume);
  const ssd::Descriptor connection = host::connect_at(session.volume);
  if (options.what == "status") {
    const host::ServerStatus status = host::status_of(connection);
    return session.json ? print_json(status) : print_table(status);
  }
  const bool stops = options.what == "stop";  // the answer comes when all is durable
  (void)host::ask_server(connection, {stops ? host::Ask::kStop : host::Ask::kDrain, {}});
  if (stops) wait_until_name_is_free(session.volume, server);
}

}  // namespace

void run_ctl(Session& session, const CtlOptions& options) {
  try {
    ask(session, options);
  } catch (const std::system_error& problem) {
    const std::string words = problem.what();
    throw Failure{words.starts_with(session.volume) ? words : session.volume + ": " + words};
  }
}

}  // namespace gofs::cli
