// SPDX-License-Identifier: Apache-2.0
//
// An I/O command as it comes out of its submission queue entry: checked, in bytes.
#pragma once

#include "ssd/controller_state.h"
#include "ssd/prp.h"

namespace gofs::ssd {

/// One lane's command. With a status other than kSuccess nothing of it is carried out.
struct IoCommand {
  format::nvme::Status status = format::nvme::kSuccess;
  uint8_t opcode = 0;
  bool durable = false;  // the media is synced before it completes
  bool valid = false;    // this lane has a command
  uint16_t cid = 0;
  uint32_t nsid = 0;
  uint64_t lba = 0;
  uint32_t lba_count = 0;
  uint32_t transfer_bytes = 0;  // moved between the driver's memory and the media
  uint32_t page_count = 0;      // PRP pages of the transfer
  uint64_t prp1 = 0;
  uint64_t prp2 = 0;
  uint32_t range_count = 0;  // Dataset Management with deallocation

  GOFS_HD bool is(format::nvme::IoOpcode wanted) const {
    return opcode == static_cast<uint8_t>(wanted);
  }
  GOFS_HD bool zeroes_media() const {
    return valid && !fails() && (is(format::nvme::IoOpcode::kWriteZeroes) || range_count != 0);
  }
  GOFS_HD bool fails() const { return status != format::nvme::kSuccess; }
  GOFS_HD void fail(format::nvme::Status why) {
    status = why;
    transfer_bytes = 0;
    page_count = 0;
  }
};

namespace detail {

/// The status of a command that names LBAs, before its PRPs are looked at.
GOFS_HD inline format::nvme::Status check_lbas(const VirtualController& controller, uint64_t lba,
                                               uint64_t count) {
  using namespace format::nvme;
  if (lba > controller.lba_count || count > controller.lba_count - lba) {
    return kLbaOutOfRange | kDoNotRetry;
  }
  return kSuccess;
}

GOFS_HD inline format::nvme::Status check_transfer(const VirtualController& controller,
                                                   const IoCommand& command) {
  using namespace format::nvme;
  if (controller.transfer_bytes_max != 0 &&
      uint64_t{command.lba_count} << controller.lba_shift > controller.transfer_bytes_max) {
    return kInvalidField | kDoNotRetry;
  }
  const Status lbas = check_lbas(controller, command.lba, command.lba_count);
  if (lbas != kSuccess) return lbas;
  const Status prps = check_prps(command.prp1, command.prp2, command.page_count);
  return prps == kInvalidPrpOffset ? Status{kInvalidPrpOffset | kDoNotRetry} : prps;
}

}  // namespace detail

GOFS_HD inline IoCommand decode_io_command(const VirtualController& controller,
                                           const format::nvme::SubmissionEntry& entry) {
  using namespace format::nvme;
  IoCommand command;
  command.valid = true;
  command.opcode = entry.opcode;
  command.cid = entry.cid;
  command.nsid = entry.nsid;
  command.prp1 = entry.prp1;
  command.prp2 = entry.prp2;
  // Fused operations and SGLs are not offered.
  if (entry.flags != 0) {
    command.fail(kInvalidField | kDoNotRetry);
    return command;
  }
  const auto opcode = static_cast<IoOpcode>(entry.opcode);
  const bool to_all = opcode == IoOpcode::kFlush && entry.nsid == 0xffffffffu;
  const bool namespace_valid = entry.nsid == 1 || to_all;
  switch (opcode) {
    case IoOpcode::kFlush:
      command.durable = true;
      break;
    case IoOpcode::kRead:
    case IoOpcode::kWrite:
    case IoOpcode::kWriteZeroes:
      command.lba = uint64_t{entry.cdw11} << 32 | entry.cdw10;
      command.lba_count = (entry.cdw12 & 0xffff) + 1;
      break;
    case IoOpcode::kDatasetManagement:
      if ((entry.cdw11 & kDeallocate) != 0) command.range_count = (entry.cdw10 & 0xff) + 1;
      break;
    default:
      command.fail(kInvalidOpcode | kDoNotRetry);
      return command;
  }
  if (!namespace_valid) {
    command.fail(kInvalidNamespace | kDoNotRetry);
    return command;
  }
  if (opcode == IoOpcode::kFlush) return command;
  const bool writes = opcode != IoOpcode::kRead;
  if (writes && controller.media.read_only) {
    command.fail(kNamespaceWriteProtected | kDoNotRetry);
    return command;
  }
  Status status = kSuccess;
  if (opcode == IoOpcode::kRead || opcode == IoOpcode::kWrite) {
    command.transfer_bytes = command.lba_count << controller.lba_shift;
    command.page_count = prp_page_count(entry.prp1, command.transfer_bytes);
    status = detail::check_transfer(controller, command);
  } else if (opcode == IoOpcode::kWriteZeroes) {
    status = detail::check_lbas(controller, command.lba, command.lba_count);
  } else if (command.range_count != 0) {
    const uint32_t bytes = command.range_count * static_cast<uint32_t>(sizeof(DatasetRange));
    status = check_prps(entry.prp1, entry.prp2, prp_page_count(entry.prp1, bytes));
  }
  if (status != kSuccess) {
    command.fail(status);
    return command;
  }
  command.durable = writes && ((entry.cdw12 & kForceUnitAccess) != 0 ||
                               simt::load_relaxed(controller.volatile_cache_enabled) == 0);
  return command;
}

}  // namespace gofs::ssd
