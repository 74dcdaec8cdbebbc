// SPDX-License-Identifier: Apache-2.0
//
// Carrying out I/O commands: the data of up to a warp's worth of commands, one per lane, moved by
// the whole warp.
//
// All commands' transfers are cut into pieces at the pages of the driver's memory, and the pieces
// of all commands numbered through. Each lane works out one piece (PRP entry, place on the media),
// so list entries and chunk addresses are loaded side by side; then the warp moves all pieces
// together. All of it passes move_media(), but for media that lies apart, such as a file: there
// each lane has the host move the data of its command.
#pragma once

#include "simt/copy_ranges.h"
#include "simt/unit_numbers.h"
#include "ssd/io_command.h"

namespace gofs::ssd {

namespace detail {

/// Bytes on their way to the media (its place is the range's target; without a source they are
/// zeros) or from it (its place is the source; null: nothing was ever written there).
struct MediaMove {
  simt::CopyRange range{nullptr, nullptr, 0};
  bool to_media = false;
};

/// Collective: all that is ever written to the media, and read from it by commands, passes here:
/// the move of each lane in `lanes`.
GOFS_HD inline void move_media(simt::AnyWarp auto warp, uint32_t lanes, const MediaMove& move) {
  simt::copy_ranges(warp, lanes, move.range);
}

/// What one lane prepared: the part of one page that lies together on the media, and, in the rare
/// case that a chunk ends inside the page, the part behind.
struct Piece {
  simt::CopyRange range{nullptr, nullptr, 0};
  simt::CopyRange behind{nullptr, nullptr, 0};
  format::nvme::Status status = format::nvme::kSuccess;
};

GOFS_HD inline simt::CopyRange media_range(const Media& media, uint64_t offset, uint8_t* memory,
                                           uint32_t bytes, bool to_media) {
  if (!to_media) return {memory, media.find(offset), bytes};
  return {media.find_or_allocate(offset), memory, bytes};
}

/// A command as the lane that prepares one of its pieces sees it.
struct PieceOwner {
  uint64_t media_offset;
  uint64_t prp1;
  uint64_t prp2;
  uint32_t bytes;
  uint32_t page_count;
  bool to_media;
};

GOFS_HD inline Piece prepare_piece(const Media& media, const PieceOwner& owner, uint32_t index) {
  using namespace format::nvme;
  Piece piece;
  const PrpEntry page = prp_page(owner.prp1, owner.prp2, owner.page_count, index);
  if (page.status != kSuccess) {
    piece.status =
        page.status == kInvalidPrpOffset ? Status{kInvalidPrpOffset | kDoNotRetry} : page.status;
    return piece;
  }
  // Byte range of the transfer that lies in this page.
  const auto head = static_cast<uint32_t>(owner.prp1 & kPageMask);
  const uint32_t begin = index == 0 ? 0 : index * kBlockBytes - head;
  const uint32_t end = simt::min(owner.bytes, (index + 1) * kBlockBytes - head);
  const uint64_t offset = owner.media_offset + begin;
  auto* const memory = reinterpret_cast<uint8_t*>(page.address);
  const auto together = static_cast<uint32_t>(media.contiguous_bytes(offset, end - begin));
  piece.range = media_range(media, offset, memory, together, owner.to_media);
  if (together != end - begin) {
    piece.behind = media_range(media, offset + together, memory + together, end - begin - together,
                               owner.to_media);
  }
  if (owner.to_media && (piece.range.target == nullptr ||
                         (piece.behind.bytes != 0 && piece.behind.target == nullptr))) {
    piece.status = kCapacityExceeded | kDoNotRetry;
  }
  if (piece.status != kSuccess) piece.range.bytes = piece.behind.bytes = 0;
  return piece;
}

/// Moves the pieces of ranks 0 .. count - 1; the parts behind chunk ends after all others.
GOFS_HD inline void move_pieces(simt::AnyWarp auto warp, const Piece& piece, bool to_media,
                                uint32_t count) {
  const uint32_t lanes = warp.ballot(warp.thread_rank() < count);
  move_media(warp, lanes, {piece.range, to_media});
  if (warp.any(piece.behind.bytes != 0)) move_media(warp, lanes, {piece.behind, to_media});
}

/// One lane: has the host do it.
GOFS_HD inline format::nvme::Status transfer_apart(const Media& media, MediaTransfer transfer) {
  transfer.media = media.transfer_context;
  simt::call_host(media.transfer, &transfer);
  return transfer.status;
}

/// Sets `bytes` of the media from `offset` on to zero. Collective, uniform.
GOFS_HD inline format::nvme::Status zero_media(simt::AnyWarp auto warp, const Media& media,
                                               uint64_t offset, uint64_t bytes) {
  using namespace format::nvme;
  if (media.is_apart()) {
    Status status = kSuccess;
    if (warp.thread_rank() == 0 && bytes != 0) {
      MediaTransfer transfer;
      transfer.kind = MediaTransfer::Kind::kZero;
      transfer.offset = offset;
      transfer.bytes = bytes;
      status = transfer_apart(media, transfer);
    }
    return static_cast<Status>(warp.shfl(uint32_t{status}, 0));
  }
  constexpr uint64_t kStepBytes = kChunkBytes;
  while (bytes != 0) {
    const uint64_t step = media.contiguous_bytes(offset, simt::min(bytes, kStepBytes));
    uint8_t* const target = media.find(offset);
    if (target != nullptr) {
      move_media(warp, 1, {{target, nullptr, static_cast<uint32_t>(step)}, true});
      warp.sync();
      if (warp.thread_rank() == 0) media.mark_changed(offset, step);
    }
    offset += step;
    bytes -= step;
  }
  return kSuccess;
}

/// Deallocated blocks read zeros. Collective; the arguments are uniform.
GOFS_HD inline format::nvme::Status deallocate(simt::AnyWarp auto warp,
                                               const VirtualController& controller, uint64_t prp1,
                                               uint64_t prp2, uint32_t range_count) {
  using namespace format::nvme;
  const uint32_t size = warp.size();
  // All ranges are checked before the first is touched.
  for (uint32_t pass = 0; pass < 2; ++pass) {
    for (uint32_t window = 0; window < range_count; window += size) {
      const uint32_t index = window + warp.thread_rank();
      DatasetRange range{};
      if (index < range_count) range = load_range(prp1, prp2, range_count, index);
      const uint64_t lba = range.lba;
      const uint64_t lba_count = range.lba_count;
      if (pass == 0) {
        if (warp.any(check_lbas(controller, lba, lba_count) != kSuccess)) {
          return kLbaOutOfRange | kDoNotRetry;
        }
        continue;
      }
      for (uint32_t rank = 0; rank < size; ++rank) {
        const Status status =
            zero_media(warp, controller.media, warp.shfl(lba, rank) << controller.lba_shift,
                       warp.shfl(lba_count, rank) << controller.lba_shift);
        if (status != kSuccess) return status;
      }
    }
  }
  return kSuccess;
}

/// Write Zeroes and Dataset Management, one command after another. Returns this lane's status.
GOFS_NOINLINE GOFS_HD inline format::nvme::Status zero_blocks(simt::AnyWarp auto warp,
                                                              const VirtualController& controller,
                                                              const IoCommand& command) {
  using namespace format::nvme;
  Status status = command.status;
  for (uint32_t left = warp.ballot(command.zeroes_media()); left != 0; left &= left - 1) {
    const uint32_t rank = simt::lowest_bit(left);
    const uint32_t range_count = warp.shfl(command.range_count, rank);
    const Status outcome =
        range_count == 0
            ? zero_media(warp, controller.media,
                         warp.shfl(command.lba, rank) << controller.lba_shift,
                         uint64_t{warp.shfl(command.lba_count, rank)} << controller.lba_shift)
            : deallocate(warp, controller, warp.shfl(command.prp1, rank),
                         warp.shfl(command.prp2, rank), range_count);
    if (warp.thread_rank() == rank) status = outcome;
  }
  return status;
}

/// Each lane: Read and Write of media that lies apart.
GOFS_HD inline void move_apart(const VirtualController& controller, IoCommand& command) {
  if (command.transfer_bytes == 0 || command.fails()) return;
  MediaTransfer transfer;
  const bool writes = command.is(format::nvme::IoOpcode::kWrite);
  transfer.kind = writes ? MediaTransfer::Kind::kWrite : MediaTransfer::Kind::kRead;
  transfer.offset = command.lba << controller.lba_shift;
  transfer.bytes = command.transfer_bytes;
  transfer.prp1 = command.prp1;
  transfer.prp2 = command.prp2;
  transfer.page_count = command.page_count;
  command.status = transfer_apart(controller.media, transfer);
}

/// Read and Write: moves the data of all lanes' commands.
GOFS_HD inline void move_data(simt::AnyWarp auto warp, const VirtualController& controller,
                              IoCommand& command) {
  using namespace format::nvme;
  if (controller.media.is_apart()) return move_apart(controller, command);
  const uint32_t rank = warp.thread_rank();
  const uint32_t size = warp.size();
  const uint32_t my_pieces = command.transfer_bytes == 0 ? 0 : command.page_count;
  const bool changes = my_pieces != 0 && command.is(IoOpcode::kWrite) && !command.fails();
  const uint32_t movers = warp.ballot(my_pieces != 0);
  if (movers == 0) return;
  const simt::UnitNumbers numbers(warp, movers, my_pieces);
  const uint32_t total = numbers.count();
  for (uint32_t window = 0; window < total; window += size) {
    const uint32_t index = window + rank;
    const uint32_t window_pieces = simt::min(size, total - window);
    const simt::UnitPlace place = numbers.find(warp, index);
    const uint32_t owner_rank = place.owner;
    const PieceOwner owner{warp.shfl(command.lba, owner_rank) << controller.lba_shift,
                           warp.shfl(command.prp1, owner_rank),
                           warp.shfl(command.prp2, owner_rank),
                           warp.shfl(command.transfer_bytes, owner_rank),
                           warp.shfl(command.page_count, owner_rank),
                           warp.shfl(uint32_t{command.is(IoOpcode::kWrite)}, owner_rank) != 0};
    const bool owner_fails = warp.shfl(uint32_t{command.status}, owner_rank) != kSuccess;
    Piece piece;
    if (index < total && !owner_fails) {
      piece = prepare_piece(controller.media, owner, place.offset_units);
    }
    const uint32_t failures = warp.ballot(piece.status != kSuccess);
    for (uint32_t left = failures; left != 0; left &= left - 1) {
      const uint32_t failed = simt::lowest_bit(left);
      const uint32_t whose = warp.shfl(owner_rank, failed);
      const auto status = static_cast<Status>(warp.shfl(uint32_t{piece.status}, failed));
      if (rank == whose && command.status == kSuccess) command.status = status;
    }
    if (failures != 0 && warp.shfl(uint32_t{command.status}, owner_rank) != kSuccess) {
      piece.range.bytes = piece.behind.bytes = 0;
    }
    move_pieces(warp, piece, owner.to_media, window_pieces);
  }
  // Of a command that has failed on the way as well: parts of it may have been moved.
  warp.sync();
  if (changes) {
    controller.media.mark_changed(command.lba << controller.lba_shift, command.transfer_bytes);
  }
}

/// Makes the media durable if a command asks for it, and fails those that asked if it cannot be.
GOFS_HD inline void sync_media(simt::AnyWarp auto warp, VirtualController& controller,
                               IoCommand& command) {
  const bool asks = command.valid && command.durable && !command.fails();
  if (!warp.any(asks)) return;
  warp.sync();
  int error = 0;
  if (warp.thread_rank() == 0) {
    simt::add_relaxed(controller.flush_requests, uint64_t{1});
    if (controller.media.sync != nullptr) {
      error = simt::call_host(controller.media.sync, controller.media.sync_context);
    }
  }
  if (warp.shfl(error, 0) < 0 && asks) command.status = format::nvme::kWriteFault;
}

}  // namespace detail

/// Carries out the commands of all lanes and leaves their status. The data is moved when this
/// returns, but visible to its own lane only. Collective.
GOFS_HD inline void execute(simt::AnyWarp auto warp, VirtualController& controller,
                            IoCommand& command) {
  detail::move_data(warp, controller, command);
  if (warp.any(command.zeroes_media())) {
    command.status = detail::zero_blocks(warp, controller, command);
  }
  detail::sync_media(warp, controller, command);
}

}  // namespace gofs::ssd
