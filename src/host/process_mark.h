// SPDX-License-Identifier: Apache-2.0
//
// Which process it is that a thing was made by, so that a child of fork(), which has a copy of the
// thing but not its threads, can tell. A look costs a load: the mark lies in a page that the kernel
// clears in a child. vfork() and posix_spawn() share the page and change nothing.
#pragma once

#include <atomic>
#include <cstdint>

namespace gofs::host {

class ProcessMark {
 public:
  /// Of the process that calls. Throws std::bad_alloc.
  static ProcessMark of_this_process();

  /// Whether the process that asks is the one that has made this.
  bool is_ours() const { return page_->load(std::memory_order_relaxed) == number_; }

 private:
  ProcessMark(const std::atomic<uint64_t>* page, uint64_t number) : page_(page), number_(number) {}

  const std::atomic<uint64_t>* page_;
  uint64_t number_;
};

}  // namespace gofs::host
