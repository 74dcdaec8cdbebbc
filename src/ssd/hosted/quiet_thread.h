// SPDX-License-Identifier: Apache-2.0
//
// Threads of the library in another's program, whose signals are for its own threads. Host only.
#pragma once

#include <pthread.h>
#include <signal.h>

#include <thread>
#include <utility>

namespace gofs::ssd {

/// Starts a thread that takes no signals. Throws std::system_error.
template <typename Run>
std::thread start_quiet_thread(Run run) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    std::thread thread(std::move(run));
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return thread;
  } catch (...) {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw;
  }
}

}  // namespace gofs::ssd
