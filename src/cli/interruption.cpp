// SPDX-License-Identifier: Apache-2.0
#include "cli/interruption.h"

#include <iterator>

namespace gofs::cli {
namespace {

volatile sig_atomic_t signal_that_came = 0;

void keep_signal(int signal) { signal_that_came = signal; }

}  // namespace

InterruptionScope::InterruptionScope() {
  signal_that_came = 0;
  for (size_t i = 0; i < std::size(kSignals); ++i) {
    ::sigaction(kSignals[i], nullptr, &before_[i]);
    if (before_[i].sa_handler == SIG_IGN) continue;
    struct sigaction kept {};
    kept.sa_handler = keep_signal;
    sigemptyset(&kept.sa_mask);
    ::sigaction(kSignals[i], &kept, nullptr);
  }
}

InterruptionScope::~InterruptionScope() {
  for (size_t i = 0; i < std::size(kSignals); ++i) ::sigaction(kSignals[i], &before_[i], nullptr);
}

void stop_if_interrupted() {
  if (signal_that_came != 0) throw Interrupted{static_cast<int>(signal_that_came)};
}

}  // namespace gofs::cli
