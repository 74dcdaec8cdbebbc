// SPDX-License-Identifier: Apache-2.0
#include "host/process_mark.h"

#include <pthread.h>
#include <sys/mman.h>

#include <new>

namespace gofs::host {

namespace {

constexpr size_t kPageBytes = 4096;

std::atomic<uint64_t>* the_page = nullptr;

std::atomic<uint64_t>* make_page() {
  void* const page =
      ::mmap(nullptr, kPageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) throw std::bad_alloc();
  the_page = new (page) std::atomic<uint64_t>(0);
  // Kernels before 4.14 do not know it; then fork() clears the word, but a bare clone() does not.
  if (::madvise(page, kPageBytes, MADV_WIPEONFORK) != 0) {
    ::pthread_atfork(nullptr, nullptr, [] { the_page->store(0); });
  }
  return the_page;
}

}  // namespace

ProcessMark ProcessMark::of_this_process() {
  static std::atomic<uint64_t>* const page = make_page();
  // Numbers go on in a child, so none is one of a process before it.
  static std::atomic<uint64_t> last{0};
  uint64_t number = page->load();
  if (number != 0) return {page, number};
  const uint64_t fresh = ++last;
  return {page, page->compare_exchange_strong(number, fresh) ? fresh : number};
}

}  // namespace gofs::host
