// SPDX-License-Identifier: Apache-2.0
//
// What became of a command, as an NVMe status field or one of the driver's own verdicts, and its
// translation into errno and words. Start here to add a status.
#pragma once

#include "format/nvme.h"
#include "simt/result.h"

namespace gofs::nvme {

/// A status field (15 bits, 0 is success), or one of the verdicts below, which no device returns.
using CommandStatus = uint32_t;
inline constexpr CommandStatus kStatusTimedOut = 0x10001;      // no completion before the deadline
inline constexpr CommandStatus kStatusDeviceFailed = 0x10002;  // the controller is dead or disabled

/// Negative errno for a status, 0 for success.
GOFS_HD inline int to_errno(CommandStatus status) {
  using namespace format::nvme;
  if (status == kSuccess) return 0;
  if (status == kStatusTimedOut) return -ETIMEDOUT;
  if (status == kStatusDeviceFailed) return -EIO;
  switch (status & kStatusCodeMask) {
    case kLbaOutOfRange:
    case kCapacityExceeded:
      return -ENOSPC;
    case kInvalidOpcode:
      return -EOPNOTSUPP;
    case kInvalidField:
    case kInvalidPrpOffset:
      return -EINVAL;
    case kAccessDenied:
      return -EACCES;
    case kNamespaceNotReady:
      return -EAGAIN;
    case kInvalidNamespace:
      return -ENODEV;
    default:
      return -EIO;
  }
}

/// The standard's name of a status, for messages.
inline const char* status_name(CommandStatus status) {
  using namespace format::nvme;
  if (status == kStatusTimedOut) return "no completion before the deadline";
  if (status == kStatusDeviceFailed) return "controller failed or disabled";
  switch (status & kStatusCodeMask) {
    case kSuccess:
      return "success";
    case kInvalidOpcode:
      return "invalid command opcode";
    case kInvalidField:
      return "invalid field in command";
    case kCidConflict:
      return "command id conflict";
    case kDataTransferError:
      return "data transfer error";
    case kAbortedPowerLoss:
      return "aborted by power loss";
    case kInternalError:
      return "internal error";
    case kAbortRequested:
      return "command abort requested";
    case kAbortedQueueDeletion:
      return "aborted by queue deletion";
    case kInvalidNamespace:
      return "invalid namespace or format";
    case kInvalidPrpOffset:
      return "PRP offset invalid";
    case kLbaOutOfRange:
      return "LBA out of range";
    case kCapacityExceeded:
      return "capacity exceeded";
    case kNamespaceNotReady:
      return "namespace not ready";
    case kCompletionQueueInvalid:
      return "completion queue invalid";
    case kInvalidQueueIdentifier:
      return "invalid queue identifier";
    case kInvalidQueueSize:
      return "invalid queue size";
    case kAbortLimitExceeded:
      return "abort command limit exceeded";
    case kInvalidLogPage:
      return "invalid log page";
    case kInvalidQueueDeletion:
      return "invalid queue deletion";
    case kWriteFault:
      return "write fault";
    case kUnrecoveredReadError:
      return "unrecovered read error";
    case kAccessDenied:
      return "access denied";
    default:
      return "unknown status";
  }
}

}  // namespace gofs::nvme
