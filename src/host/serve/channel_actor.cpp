// SPDX-License-Identifier: Apache-2.0
//
// A client for socket_test.cpp, as a process: usage: channel_actor SOCKET UID SEED COUNT. As that
// user it makes, writes, reads back, renames and removes files of its own, COUNT times or until it
// is killed; where SEED is odd, by the channel that kernels have, as one warp of them. Exit status
// 0; 3: a byte or an answer was wrong, which is said; 4: the server has gone.
#include <fcntl.h>
#include <grp.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <random>
#include <string>
#include <system_error>

#include "host/backends.h"
#include "host/serve/kernel_end.h"
#include "host/serve/socket.h"

namespace {

using gofs::host::CallRequest;
using gofs::host::ChannelClient;
using gofs::host::KernelEnd;
using gofs::request::Verb;

/// Makes calls by one channel or the other.
class Channel {
 public:
  Channel(const std::string& socket, bool of_kernels) : host_(gofs::host::attach_at(socket)) {
    std::string error;
    if (of_kernels) {
      kernels_.emplace(gofs::host::make_backend("cpu", error), line_, 0);
    }
  }
  int64_t call(const CallRequest& request) {
    if (!kernels_) return host_.call(request).result;
    gofs::serve::KernelCall call(request.verb);
    call.request = gofs::host::record_of(request);
    call.path = text_of(request.path);
    call.other = text_of(request.other);
    call.output = request.buffer;
    call.input = request.input;
    return gofs::serve::ask(gofs::simt::Warp(), *gofs::serve::channel_of(kernels_->handle()), call);
  }

 private:
  static const char* text_of(const std::string* text) {
    return text != nullptr ? text->c_str() : nullptr;
  }

  ChannelClient host_;
  gofs::host::ControlLine line_{host_.connection()};
  std::optional<KernelEnd> kernels_;
};

[[noreturn]] void wrong(const std::string& what, int64_t answer) {
  if (answer == -ESTALE) std::exit(4);
  std::fprintf(stderr, "channel_actor: %s: %lld\n", what.c_str(), static_cast<long long>(answer));
  std::exit(3);
}

int64_t must(Channel& channel, const CallRequest& request, const char* what) {
  const int64_t answer = channel.call(request);
  if (answer < 0) wrong(what, answer);
  return answer;
}

int run(char** words) {
  const auto uid = static_cast<uid_t>(std::stoul(words[2]));
  if (::setgroups(0, nullptr) != 0 || ::setresgid(uid, uid, uid) != 0 ||
      ::setresuid(uid, uid, uid) != 0) {
    return 2;
  }
  const auto seed = static_cast<uint32_t>(std::stoul(words[3]));
  std::mt19937 random(seed);
  Channel channel(words[1], seed % 2 == 1);
  const std::string mine = std::string("/actor-") + words[2] + "-" + words[3];
  const std::string renamed = mine + "-renamed";
  std::string bytes(100'000, '\0');
  std::string found(bytes.size(), '\0');
  for (long turn = 0; turn < std::stol(words[4]); ++turn) {
    const auto fd = static_cast<int>(must(
        channel,
        {.verb = Verb::kOpen, .path = &mine, .flags = O_RDWR | O_CREAT | O_TRUNC, .mode = 0600},
        "open"));
    const size_t size = 1 + random() % bytes.size();
    for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(random());
    const int64_t wrote = must(
        channel, {.verb = Verb::kPwrite, .descriptor = fd, .input = bytes.data(), .bytes = size},
        "write");
    const int64_t read = must(
        channel, {.verb = Verb::kPread, .descriptor = fd, .buffer = found.data(), .bytes = size},
        "read");
    if (wrote != static_cast<int64_t>(size) || read != wrote) wrong("sizes", read);
    if (found.compare(0, size, bytes, 0, size) != 0) wrong("contents", turn);
    if (random() % 8 == 0) must(channel, {.verb = Verb::kFsync, .descriptor = fd}, "fsync");
    must(channel, {.verb = Verb::kRename, .path = &renamed, .other = &mine}, "rename");
    // Some stay open when they go.
    if (random() % 4 != 0) must(channel, {.verb = Verb::kClose, .descriptor = fd}, "close");
    must(channel, {.verb = Verb::kUnlink, .path = &renamed}, "unlink");
  }
  return 0;
}

}  // namespace

int main(int count, char** words) {
  if (count != 5) return 2;
  try {
    return run(words);
  } catch (const std::system_error& problem) {
    std::fprintf(stderr, "channel_actor: %s\n", problem.what());
    return 5;
  }
}
