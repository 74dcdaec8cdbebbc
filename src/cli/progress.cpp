// SPDX-License-Identifier: Apache-2.0
#include "cli/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include "cli/output.h"
#include "cli/text.h"

namespace gofs::cli {

Progress::Progress(uint64_t files, uint64_t bytes)
    : shown_(::isatty(STDERR_FILENO) == 1), files_(files), bytes_(bytes) {}

Progress::~Progress() { clear(); }

void Progress::update(uint64_t bytes_done) {
  constexpr auto kInterval = std::chrono::milliseconds(100);
  const auto now = Clock::now();
  if (!shown_ || now - drawn_ < kInterval) return;
  drawn_ = now;
  on_screen_ = true;
  const double seconds = std::chrono::duration<double>(now - start_).count();
  const auto rate = static_cast<uint64_t>(static_cast<double>(bytes_done) / seconds);
  const uint64_t percent = bytes_ == 0 ? 100 : bytes_done * 100 / bytes_;
  (void)print_error(fmt::format("\r\x1b[K{} files, {} of {} ({} %), {}/s", files_,
                                size_text(bytes_done), size_text(bytes_), percent,
                                size_text(rate)));
}

void Progress::clear() {
  if (!on_screen_) return;
  on_screen_ = false;
  (void)print_error("\r\x1b[K");
}

}  // namespace gofs::cli
