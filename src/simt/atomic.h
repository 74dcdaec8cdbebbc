// SPDX-License-Identifier: Apache-2.0
//
// Atomic access to plain words, the same on both sides: CCCL's cuda::atomic_ref. Each call names
// its memory order; scope is `device` (all threads of one GPU, or all threads of the process)
// unless the name says `system`, which is for words that a device on the other side of PCIe also
// touches. System words have one writer and are only loaded and stored: PCIe has no native
// read-modify-write.
#pragma once

#include <cuda/atomic>

#include "simt/platform.h"

namespace gofs::simt {

using cuda::std::memory_order_acq_rel;
using cuda::std::memory_order_acquire;
using cuda::std::memory_order_relaxed;
using cuda::std::memory_order_release;
using cuda::std::memory_order_seq_cst;

template <typename T>
using AtomicRef = cuda::atomic_ref<T, cuda::thread_scope_device>;
template <typename T>
using SystemAtomicRef = cuda::atomic_ref<T, cuda::thread_scope_system>;

// atomic_ref has no const form: the word is not changed by a load.
template <typename T>
GOFS_HD T load_relaxed(const T& word) {
  return AtomicRef<T>(const_cast<T&>(word)).load(memory_order_relaxed);
}
template <typename T>
GOFS_HD T load_acquire(const T& word) {
  return AtomicRef<T>(const_cast<T&>(word)).load(memory_order_acquire);
}
template <typename T>
GOFS_HD void store_relaxed(T& word, T value) {
  AtomicRef<T>(word).store(value, memory_order_relaxed);
}
template <typename T>
GOFS_HD void store_release(T& word, T value) {
  AtomicRef<T>(word).store(value, memory_order_release);
}
template <typename T>
GOFS_HD T add_relaxed(T& word, T value) {
  return AtomicRef<T>(word).fetch_add(value, memory_order_relaxed);
}

/// Adds to a count whose former value is not needed: a GPU need not wait for it then. The word lies
/// in global memory.
GOFS_HD inline void count_relaxed(uint64_t& word, uint64_t value) {
#if GOFS_ON_GPU
  asm volatile("red.relaxed.gpu.global.add.u64 [%0], %1;" ::"l"(__cvta_generic_to_global(&word)),
               "l"(value)
               : "memory");
#else
  AtomicRef<uint64_t>(word).fetch_add(value, memory_order_relaxed);
#endif
}
GOFS_HD inline void count_release(uint64_t& word, uint64_t value) {
#if GOFS_ON_GPU
  asm volatile("red.release.gpu.global.add.u64 [%0], %1;" ::"l"(__cvta_generic_to_global(&word)),
               "l"(value)
               : "memory");
#else
  AtomicRef<uint64_t>(word).fetch_add(value, memory_order_release);
#endif
}

/// Loads a word at this place in the program. The compiler may move an ordinary load to where its
/// value is used, often behind a branch; a GPU then waits there once more for memory.
template <typename T>
GOFS_HD T load_here(const T& word) {
  return load_relaxed(word);
}

template <typename T>
GOFS_HD T load_system_relaxed(const T& word) {
  return SystemAtomicRef<T>(const_cast<T&>(word)).load(memory_order_relaxed);
}
template <typename T>
GOFS_HD T load_system_acquire(const T& word) {
  return SystemAtomicRef<T>(const_cast<T&>(word)).load(memory_order_acquire);
}
template <typename T>
GOFS_HD void store_system_relaxed(T& word, T value) {
  SystemAtomicRef<T>(word).store(value, memory_order_relaxed);
}
template <typename T>
GOFS_HD void store_system_release(T& word, T value) {
  SystemAtomicRef<T>(word).store(value, memory_order_release);
}

/// Several acquires by one thread at the price of one on a GPU, whose fence is what costs: what
/// these loads have found is acquired by acquire_loaded(). (ThreadSanitizer knows no fences; there
/// each of them acquires.)
template <typename T>
GOFS_HD T load_system_to_acquire(const T& word) {
#if GOFS_ON_GPU
  return load_system_relaxed(word);
#else
  return load_system_acquire(word);
#endif
}
GOFS_HD inline void acquire_loaded() {
#if GOFS_ON_GPU
  cuda::atomic_thread_fence(memory_order_acquire, cuda::thread_scope_system);
#endif
}

/// Releases two words at once, `first` before `second`: on a GPU at the price of one release, whose
/// fence is what costs. It is written as two there where ThreadSanitizer looks on, which does not
/// know fences; on x86-64 a release store is an ordinary one.
template <typename T, typename U>
GOFS_HD void store_system_release_both(T& first, T first_value, U& second, U second_value) {
#if GOFS_ON_GPU
  cuda::atomic_thread_fence(memory_order_release, cuda::thread_scope_system);
  store_relaxed(first, first_value);
  store_system_relaxed(second, second_value);
#else
  store_release(first, first_value);
  store_system_release(second, second_value);
#endif
}

/// Several releases by one thread at the price of one on a GPU, whose fence is what costs: store()
/// and add() hand over what was done before this was made. (ThreadSanitizer knows no fences; there
/// each of them releases.)
class Release {
 public:
  GOFS_HD Release() {
#if GOFS_ON_GPU
    cuda::atomic_thread_fence(memory_order_release, cuda::thread_scope_device);
#endif
  }

  template <typename T>
  GOFS_HD void store(T& word, T value) const {
    AtomicRef<T>(word).store(value, kOrder);
  }
  template <typename T>
  GOFS_HD void add(T& word, T value) const {
    AtomicRef<T>(word).fetch_add(value, kOrder);
  }

 private:
#if GOFS_ON_GPU
  static constexpr auto kOrder = memory_order_relaxed;
#else
  static constexpr auto kOrder = memory_order_release;
#endif
};

/// The order of an access that add_before_look() follows, by the same thread: what the word's
/// writer has released is acquired by the fence there, which need not be paid twice.
#if GOFS_ON_GPU
inline constexpr auto kAcquiredByNextLook = memory_order_relaxed;
#else
inline constexpr auto kAcquiredByNextLook = memory_order_acquire;
#endif

/// Loads a word in that order.
template <typename T>
GOFS_HD T load_before_look(const T& word) {
  return AtomicRef<T>(const_cast<T&>(word)).load(kAcquiredByNextLook);
}

/// Adds to `mine`, before look_after_add() loads a word that others change. Of two who each add to
/// the word that the other looks at, one at least sees what the other has added: sequentially
/// consistent, which costs a GPU one fence where two such accesses would cost two. What the word's
/// writer has released is acquired, by what comes after too.
template <typename T>
GOFS_HD T add_before_look(T& mine, T value) {
#if GOFS_ON_GPU
  const T before = AtomicRef<T>(mine).fetch_add(value, memory_order_relaxed);
  cuda::atomic_thread_fence(memory_order_seq_cst, cuda::thread_scope_device);
  return before;
#else
  return AtomicRef<T>(mine).fetch_add(value, memory_order_seq_cst);
#endif
}
/// What `other` is after add_before_look(), by the same thread or one that has synchronised with
/// it. Acquires. A GPU begins no other load before this one has ended.
template <typename T>
GOFS_HD T look_after_add(const T& other) {
#if GOFS_ON_GPU
  return load_acquire(other);
#else
  return AtomicRef<T>(const_cast<T&>(other)).load(memory_order_seq_cst);
#endif
}

/// The orders of a word that a thread stores after commands that it has seen done, for one that
/// loads it before it starts others: what the device did for the first comes before what it does
/// for the second. A GPU has the fences that this takes anyway: the first has released the slots of
/// its commands since, and the second is yet to release the entries of its own.
#if GOFS_ON_GPU
inline constexpr auto kAfterCommand = memory_order_relaxed;
inline constexpr auto kBeforeCommand = memory_order_relaxed;
#else
inline constexpr auto kAfterCommand = memory_order_release;
inline constexpr auto kBeforeCommand = memory_order_acquire;
#endif
template <typename T>
GOFS_HD void store_after_command(T& word, T value) {
  AtomicRef<T>(word).store(value, kAfterCommand);
}
template <typename T>
GOFS_HD T load_before_command(const T& word) {
  return AtomicRef<T>(const_cast<T&>(word)).load(kBeforeCommand);
}

/// A lock that is only ever tried: whoever fails goes on with something useful and comes back.
/// Zero is free. Held across no wait.
GOFS_HD inline bool try_lock(uint32_t& lock) {
  if (load_relaxed(lock) != 0) return false;
  uint32_t expected = 0;
  return AtomicRef<uint32_t>(lock).compare_exchange_strong(expected, 1u, memory_order_acquire,
                                                           memory_order_relaxed);
}
/// The same for who expects it to be free, and does not look before.
GOFS_HD inline bool try_lock_at_once(uint32_t& lock) {
  return AtomicRef<uint32_t>(lock).exchange(1u, memory_order_acquire) == 0;
}
GOFS_HD inline void unlock(uint32_t& lock) { store_release(lock, 0u); }

}  // namespace gofs::simt
