// SPDX-License-Identifier: Apache-2.0
//
// For tests only: gofsd with threads that hang. Linked with --wrap=epoll_wait and --wrap=shutdown:
// in the process whose number the file GOFS_HANG_FILE has, whoever wants to wait for bells or
// clients does so for ever. In the one whose number GOFS_HANG_AT_END_FILE has, whoever ends a
// client waits until the file has gone, and says so by another file, with .hangs behind its name.
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>

namespace {

bool shall_hang(const char* variable) {
  const char* const path = std::getenv(variable);
  if (path == nullptr) return false;
  pid_t pid = 0;
  std::ifstream(path) >> pid;
  return pid == ::getpid();
}

}  // namespace

extern "C" {
// The linker has these names.
int __real_epoll_wait(int events, epoll_event* found, int count, int timeout_ms);
int __wrap_epoll_wait(int events, epoll_event* found, int count, int timeout_ms);
int __real_shutdown(int connection, int how);
int __wrap_shutdown(int connection, int how);

int __wrap_epoll_wait(int events, epoll_event* found, int count, int timeout_ms) {
  while (shall_hang("GOFS_HANG_FILE")) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  return __real_epoll_wait(events, found, count, timeout_ms);
}

int __wrap_shutdown(int connection, int how) {
  constexpr const char* kVariable = "GOFS_HANG_AT_END_FILE";
  while (shall_hang(kVariable)) {
    std::ofstream(std::string(std::getenv(kVariable)) + ".hangs") << ::getpid();
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return __real_shutdown(connection, how);
}
}
