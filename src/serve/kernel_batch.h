// SPDX-License-Identifier: Apache-2.0
//
// Batches of a client's kernels (request/verb.h has the calls): the batch is the server's, and each
// file of it is entered, read and written by calls of its own, which the warps of a group share.
//
// Files are made by calls too, as any file is, so others may see them before they are whole, and
// more than one of a name are made in no certain order.
#pragma once

#include "serve/kernel_data.h"
#include "vfs/batch_create.h"

namespace gofs::serve {

/// What one warp of `warps` does of a batch: every `warps`-th of `count` files, from `index` on.
struct BatchShare {
  int bd;
  uint32_t count;
  uint32_t index;
  uint32_t warps;
};

namespace detail {

/// Files whose inodes one call loads.
inline constexpr uint32_t kLoadedAtOnce = 256;

GOFS_HD inline KernelCall about_file(request::Verb verb, int bd, uint32_t index) {
  KernelCall call(verb);
  call.request.descriptor = bd;
  call.request.number = index;
  return call;
}

/// Moves the first `bytes` of a file of a batch, or all that it has, in pieces. What was moved.
/// Collective, uniform.
GOFS_HD inline uint64_t move_file(simt::AnyWarp auto warp, KernelChannel& channel,
                                  request::Verb verb, int bd, uint32_t index, uint8_t* memory,
                                  uint64_t bytes) {
  uint64_t done = 0;
  do {  // of no bytes too: the server says whether it could be
    KernelCall call = about_file(verb, bd, index);
    call.request.bytes = simt::min(channel.part_bytes, bytes - done);
    call.request.offset = static_cast<int64_t>(done);
    const bool reads = verb == request::Verb::kBatchPread;
    (reads ? call.output : const_cast<void*&>(call.input)) = memory + done;
    const uint64_t wanted = call.request.bytes;
    const int64_t got = ask(warp, channel, call);
    if (got <= 0) break;
    done += static_cast<uint64_t>(got);
    // Why a write was a short one the next one says.
    if (reads && static_cast<uint64_t>(got) < wanted) break;
  } while (done < bytes);
  return done;
}

/// Makes file `index` with its contents. The error that it has; `made`: it is there. Collective,
/// uniform.
GOFS_HD inline int make_file(simt::AnyWarp auto warp, KernelChannel& channel, uint32_t index,
                             const vfs::BatchCreation& creation, bool& made) {
  made = false;
  const char* const name = creation.names[index];
  f2fs::EntryName entry{};
  int error = warp.thread_rank() == 0 ? vfs::detail::check_new_name(name, entry) : 0;
  error = warp.shfl(error, 0);
  if (error != 0) return error;
  KernelCall open(request::Verb::kOpen);
  open.directory = creation.path;
  open.path = name;
  open.request.flags = kOpenWriteOnly | kOpenCreate | kOpenExclusive;
  open.request.mode = creation.permissions;
  const int64_t fd = ask(warp, channel, open);
  if (fd < 0) return static_cast<int>(fd);
  made = true;
  if (creation.buffer != nullptr && creation.bytes[index] != 0) {
    auto* const input = const_cast<uint8_t*>(creation.buffer + creation.offsets[index]);
    const uint64_t bytes = creation.bytes[index];
    uint64_t done = 0;
    while (done < bytes && error == 0) {
      const MovedRange rest{request::Verb::kPwrite, static_cast<int>(fd), input + done,
                            bytes - done, done};
      const int64_t wrote = moved_bytes(rest, move_share(warp, channel, rest, 0, 1));
      if (wrote <= 0) error = wrote < 0 ? static_cast<int>(wrote) : -EIO;
      if (wrote > 0) done += static_cast<uint64_t>(wrote);
    }
  }
  KernelCall close(request::Verb::kClose);
  close.request.descriptor = static_cast<int>(fd);
  const int64_t closed = ask(warp, channel, close);
  if (error == 0) error = static_cast<int>(closed);
  if (error == 0) return 0;
  // It is there with all of its contents or not at all.
  KernelCall unlink(request::Verb::kUnlink);
  unlink.directory = creation.path;
  unlink.path = name;
  made = ask(warp, channel, unlink) != 0;
  return error;
}

}  // namespace detail

/// How many files a batch has, or a negative errno. Collective, uniform.
GOFS_HD inline int64_t count_batch(simt::AnyWarp auto warp, KernelChannel& channel, int bd) {
  KernelCall call = detail::about_file(request::Verb::kBatchFiles, bd, 0);
  return ask(warp, channel, call);
}

/// What is known of file `index`; of none there is the error. Collective, uniform, by one lane.
GOFS_HD inline BatchFile batch_file(simt::AnyWarp auto warp, KernelChannel& channel, int bd,
                                    uint32_t index) {
  BatchFile file{};
  KernelCall call = detail::about_file(request::Verb::kBatchFiles, bd, index);
  call.output = &file;
  call.request.bytes = sizeof(file);
  const int64_t given = ask(warp, channel, call);
  if (given != 1) file.error = given < 0 ? static_cast<int>(given) : -EINVAL;
  return file;
}

/// Enters files by their names, of which those are not looked at that not all warps reach.
/// Collective, uniform.
GOFS_HD inline void enter_names(simt::AnyWarp auto warp, KernelChannel& channel,
                                const BatchShare& share, const char* const* names) {
  for (uint32_t i = share.index; i < share.count; i += share.warps) {
    KernelCall call = detail::about_file(request::Verb::kBatchEnter, share.bd, i);
    if (simt::is_common_source(names[i])) {
      call.path = names[i];
    } else {
      call.request.flags = EFAULT;
    }
    (void)ask(warp, channel, call);
  }
}

/// Loads the files that a directory was found to have. Collective, uniform.
GOFS_HD inline void load_listed(simt::AnyWarp auto warp, KernelChannel& channel,
                                const BatchShare& share) {
  constexpr uint64_t kStep = detail::kLoadedAtOnce;
  for (uint64_t first = share.index * kStep; first < share.count; first += share.warps * kStep) {
    KernelCall call =
        detail::about_file(request::Verb::kBatchLoad, share.bd, static_cast<uint32_t>(first));
    call.request.length = kStep;
    (void)ask(warp, channel, call);
  }
}

/// Reads file i to `buffer + offsets[i]`. The bytes of all. Collective, uniform.
GOFS_HD inline int64_t read_files(simt::AnyWarp auto warp, KernelChannel& channel,
                                  const BatchShare& share, uint8_t* buffer,
                                  const uint64_t* offsets) {
  uint64_t sum = 0;
  for (uint32_t i = share.index; i < share.count; i += share.warps) {
    sum += detail::move_file(warp, channel, request::Verb::kBatchPread, share.bd, i,
                             buffer + offsets[i], UINT64_MAX);
  }
  return static_cast<int64_t>(sum);
}

/// Writes the first bytes[i] bytes of file i from `buffer + offsets[i]`. The bytes of all.
/// Collective, uniform.
GOFS_HD inline int64_t write_files(simt::AnyWarp auto warp, KernelChannel& channel,
                                   const BatchShare& share, const uint8_t* buffer,
                                   const uint64_t* offsets, const uint64_t* bytes) {
  uint64_t sum = 0;
  for (uint32_t i = share.index; i < share.count; i += share.warps) {
    sum += detail::move_file(warp, channel, request::Verb::kBatchPwrite, share.bd, i,
                             const_cast<uint8_t*>(buffer + offsets[i]), bytes[i]);
  }
  return static_cast<int64_t>(sum);
}

/// Makes the files of `creation` and enters them. Collective, uniform.
GOFS_HD inline void make_files(simt::AnyWarp auto warp, KernelChannel& channel,
                               const BatchShare& share, const vfs::BatchCreation& creation) {
  for (uint32_t i = share.index; i < share.count; i += share.warps) {
    bool made = false;
    const int error = detail::make_file(warp, channel, i, creation, made);
    KernelCall call = detail::about_file(request::Verb::kBatchEnter, share.bd, i);
    if (made) call.path = creation.names[i];
    call.request.bits = made ? request::kMade : uint16_t{0};
    call.request.flags = static_cast<uint32_t>(-error);
    (void)ask(warp, channel, call);
  }
}

}  // namespace gofs::serve
