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

/// Whether it is the driver that says so.
GOFS_HD constexpr bool is_verdict(CommandStatus status) { return status > 0x7fff; }

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

/// Whether the SSD says that it could not read or write what is stored.
GOFS_HD inline bool is_media_error(CommandStatus status) {
  constexpr CommandStatus kTypeMask = 0x700;
  return status != kStatusTimedOut && status != kStatusDeviceFailed &&
         (status & kTypeMask) == (format::nvme::kWriteFault & kTypeMask);
}

/// The standard's name of a status, or words for a verdict of the driver.
inline const char* status_name(CommandStatus status) {
  using namespace format::nvme;
  if (status == kStatusTimedOut) return "no completion before the deadline";
  if (status == kStatusDeviceFailed) return "the controller has failed or is disabled";
  switch (status & kStatusCodeMask) {
    case kSuccess:
      return "success";
    case kInvalidOpcode:
      return "Invalid Command Opcode";
    case kInvalidField:
      return "Invalid Field in Command";
    case kCidConflict:
      return "Command ID Conflict";
    case kDataTransferError:
      return "Data Transfer Error";
    case kAbortedPowerLoss:
      return "Commands Aborted due to Power Loss Notification";
    case kInternalError:
      return "Internal Error";
    case kAbortRequested:
      return "Command Abort Requested";
    case kAbortedQueueDeletion:
      return "Command Aborted due to SQ Deletion";
    case kInvalidNamespace:
      return "Invalid Namespace or Format";
    case kInvalidPrpOffset:
      return "PRP Offset Invalid";
    case kSanitizeFailed:
      return "Sanitize Failed";
    case kSanitizeInProgress:
      return "Sanitize In Progress";
    case kNamespaceWriteProtected:
      return "Namespace is Write Protected";
    case kCommandInterrupted:
      return "Command Interrupted";
    case kLbaOutOfRange:
      return "LBA Out of Range";
    case kCapacityExceeded:
      return "Capacity Exceeded";
    case kNamespaceNotReady:
      return "Namespace Not Ready";
    case kReservationConflict:
      return "Reservation Conflict";
    case kFormatInProgress:
      return "Format In Progress";
    case kCompletionQueueInvalid:
      return "Completion Queue Invalid";
    case kInvalidQueueIdentifier:
      return "Invalid Queue Identifier";
    case kInvalidQueueSize:
      return "Invalid Queue Size";
    case kAbortLimitExceeded:
      return "Abort Command Limit Exceeded";
    case kInvalidLogPage:
      return "Invalid Log Page";
    case kInvalidQueueDeletion:
      return "Invalid Queue Deletion";
    case kWriteFault:
      return "Write Fault";
    case kUnrecoveredReadError:
      return "Unrecovered Read Error";
    case kAccessDenied:
      return "Access Denied";
    default:
      return "an error that GoFS has no name for";
  }
}

}  // namespace gofs::nvme
