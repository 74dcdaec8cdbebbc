// SPDX-License-Identifier: Apache-2.0
//
// Reads and writes of a client's kernels, in pieces: a call takes no more than the part of the
// ring's buffer that its slot has. The warps of a group share the pieces.
//
// A range of several pieces is several calls, between which others may read and write. The warps of
// a group make theirs in any order. Where a descriptor appends that order is the file's, so the
// server refuses such a piece, and one warp writes the range.
#pragma once

#include "serve/kernel_channel.h"

namespace gofs::serve {

/// What is read from a file, or written to it.
struct MovedRange {
  request::Verb verb;  // kPread or kPwrite
  int fd;
  uint8_t* buffer;  // what is only written from is not changed
  uint64_t bytes;
  uint64_t offset;
};

/// What is written to it, from the parts of a vector.
struct WrittenParts {
  request::Verb verb;  // kPwrite or kWrite
  int fd;
  const IoVector* parts;
  int count;
  uint64_t bytes;   // of all
  uint64_t offset;  // of kPwrite
};

namespace detail {

inline constexpr uint32_t kErrnoBits = 12;

/// Where a range ended too soon, and why: 0 for the file's end. Of several the first is the
/// greatest, and 0 stands for none.
GOFS_HD constexpr int64_t pack_end(uint64_t at, int error) {
  return INT64_MAX - static_cast<int64_t>(at << kErrnoBits | static_cast<uint32_t>(-error));
}

/// No warp has less to do than this, if there is enough.
inline constexpr uint64_t kPieceBytesMin = 32 * 1024;

GOFS_HD inline uint64_t piece_bytes(const KernelChannel& channel, uint64_t bytes, uint32_t count) {
  const uint64_t fair = simt::align_up((bytes + count - 1) / count, kPieceBytesMin);
  return simt::min(simt::max(fair, kPieceBytesMin), channel.part_bytes);
}

}  // namespace detail

/// What moved_bytes() answers for a range that several warps may not share; nothing is moved. Then
/// one warp alone is to move it.
inline constexpr int64_t kByOneWarp = -ESPIPE;

/// Moves the share of warp `index` of `count`. What is to be given to moved_bytes(), the greatest
/// of all warps' answers. Collective, uniform.
GOFS_HD inline int64_t move_share(simt::AnyWarp auto warp, KernelChannel& channel,
                                  const MovedRange& range, uint32_t index, uint32_t count) {
  const uint64_t piece = detail::piece_bytes(channel, range.bytes, count);
  const bool in_any_order =
      range.verb == request::Verb::kPwrite && count > 1 && range.bytes > piece;
  // The first one asks also where there is nothing to move: the descriptor may be wrong.
  for (uint64_t at = index * piece; at < range.bytes || at == 0; at += count * piece) {
    KernelCall call(range.verb);
    call.request.descriptor = range.fd;
    call.request.bytes = simt::min(piece, range.bytes - at);
    call.request.offset = static_cast<int64_t>(range.offset + at);
    if (in_any_order) call.request.bits = request::kPiece;
    if (range.verb == request::Verb::kPread) {
      call.output = range.buffer + at;
    } else {
      call.input = range.buffer + at;
    }
    const uint64_t wanted = call.request.bytes;
    const int64_t got = ask(warp, channel, call);
    if (got < 0) return detail::pack_end(at, static_cast<int>(got));
    if (static_cast<uint64_t>(got) < wanted) return detail::pack_end(at + got, 0);
  }
  return 0;
}

/// Bytes that were moved, or a negative errno: as pread(2) and pwrite(2) have it; or kByOneWarp.
GOFS_HD inline int64_t moved_bytes(const MovedRange& range, int64_t greatest) {
  if (greatest <= 0) return greatest < 0 ? greatest : static_cast<int64_t>(range.bytes);
  const auto first = static_cast<uint64_t>(INT64_MAX - greatest);
  const uint64_t at = first >> detail::kErrnoBits;
  const auto error = static_cast<int64_t>(first & ((1u << detail::kErrnoBits) - 1));
  return at == 0 ? -error : static_cast<int64_t>(at);
}

/// write(2) by one warp, at the descriptor's position: the pieces follow each other, unless others
/// write there too. Collective, uniform.
GOFS_HD inline int64_t write_on(simt::AnyWarp auto warp, KernelChannel& channel, int fd,
                                const void* input, uint64_t bytes) {
  uint64_t done = 0;
  do {
    KernelCall call(request::Verb::kWrite);
    call.request.descriptor = fd;
    call.request.bytes = simt::min(channel.part_bytes, bytes - done);
    call.input = static_cast<const uint8_t*>(input) + done;
    const uint64_t wanted = call.request.bytes;
    const int64_t got = ask(warp, channel, call);
    if (got < 0) return done != 0 ? static_cast<int64_t>(done) : got;
    done += static_cast<uint64_t>(got);
    if (static_cast<uint64_t>(got) < wanted) break;
  } while (done < bytes);
  return static_cast<int64_t>(done);
}

/// Whether the parts of a vector, of `bytes` in all, are written by one call: write_parts(). Others
/// are written by calls of their own.
GOFS_HD inline bool is_one_write(const KernelChannel& channel, int count, uint64_t bytes) {
  return count > 1 && bytes <= channel.part_bytes;
}

/// writev(2), or, by kPwrite, pwritev(2). Collective, uniform.
GOFS_HD inline int64_t write_parts(simt::AnyWarp auto warp, KernelChannel& channel,
                                   const WrittenParts& write) {
  KernelCall call(write.verb);
  call.request.descriptor = write.fd;
  call.request.bytes = write.bytes;
  call.request.offset = static_cast<int64_t>(write.offset);
  call.parts = write.parts;
  call.part_count = write.count;
  return ask(warp, channel, call);
}

}  // namespace gofs::serve
