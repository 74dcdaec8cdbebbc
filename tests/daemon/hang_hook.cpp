// SPDX-License-Identifier: Apache-2.0
//
// For tests only: gofsd with threads that hang. Linked with --wrap=epoll_wait: in the process whose
// number the file GOFS_HANG_FILE has, whoever wants to wait for bells or clients does so for ever.
#include <sys/epoll.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <thread>

namespace {

bool shall_hang() {
  const char* const path = std::getenv("GOFS_HANG_FILE");
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

int __wrap_epoll_wait(int events, epoll_event* found, int count, int timeout_ms) {
  while (shall_hang()) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  return __real_epoll_wait(events, found, count, timeout_ms);
}
}
