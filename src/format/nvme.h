// SPDX-License-Identifier: Apache-2.0
//
// NVMe as it is on the wire: queue entries, controller registers, status codes and Identify data.
// Source: NVM Express Base Specification 1.4 and the NVM command set. Layout only; what is done
// with it is in nvme/ (the driver) and ssd/ (the virtual controller), which share nothing else.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gofs::format::nvme {

/// Submission queue entry: one 64-byte command.
struct alignas(16) SubmissionEntry {
  uint8_t opcode;
  uint8_t flags;  // fused operation and PRP/SGL selection: always 0 (single command, PRPs)
  uint16_t cid;
  uint32_t nsid;
  uint32_t cdw2;
  uint32_t cdw3;
  uint64_t metadata;
  uint64_t prp1;
  uint64_t prp2;
  uint32_t cdw10;  // I/O: low half of the starting LBA
  uint32_t cdw11;  // I/O: high half of the starting LBA
  uint32_t cdw12;  // I/O: number of LBAs - 1 in bits 0..15, FUA in bit 30
  uint32_t cdw13;
  uint32_t cdw14;
  uint32_t cdw15;
};
static_assert(sizeof(SubmissionEntry) == 64 && offsetof(SubmissionEntry, prp1) == 24 &&
              offsetof(SubmissionEntry, cdw10) == 40);

/// Completion queue entry. `status` holds the phase tag in bit 0 and the status field above it.
struct alignas(16) CompletionEntry {
  uint32_t dw0;
  uint32_t dw1;
  uint16_t sq_head;
  uint16_t sq_id;
  uint16_t cid;
  uint16_t status;
};
static_assert(sizeof(CompletionEntry) == 16 && offsetof(CompletionEntry, cid) == 12);

enum class AdminOpcode : uint8_t {
  kDeleteSubmissionQueue = 0x00,
  kCreateSubmissionQueue = 0x01,
  kGetLogPage = 0x02,
  kDeleteCompletionQueue = 0x04,
  kCreateCompletionQueue = 0x05,
  kIdentify = 0x06,
  kAbort = 0x08,
  kSetFeatures = 0x09,
  kGetFeatures = 0x0a,
};

enum class IoOpcode : uint8_t {
  kFlush = 0x00,
  kWrite = 0x01,
  kRead = 0x02,
  kWriteZeroes = 0x08,
  kDatasetManagement = 0x09,
};

inline constexpr uint32_t kForceUnitAccess = 1u << 30;  // CDW12 of Read and Write
inline constexpr uint32_t kDeallocate = 1u << 2;        // CDW11 of Dataset Management
inline constexpr uint32_t kFeatureVolatileWriteCache = 0x06;
inline constexpr uint32_t kFeatureNumberOfQueues = 0x07;
inline constexpr uint32_t kIdentifyNamespace = 0x00;  // CNS values
inline constexpr uint32_t kIdentifyController = 0x01;
inline constexpr uint32_t kLogErrorInformation = 0x01;
inline constexpr uint32_t kLogHealth = 0x02;

/// Status field without the phase tag: status code in bits 0..7, type in bits 8..10, more in bit
/// 13, do not retry in bit 14.
using Status = uint16_t;
enum : Status {
  kSuccess = 0x000,
  kInvalidOpcode = 0x001,
  kInvalidField = 0x002,
  kCidConflict = 0x003,
  kDataTransferError = 0x004,
  kAbortedPowerLoss = 0x005,
  kInternalError = 0x006,
  kAbortRequested = 0x007,
  kAbortedQueueDeletion = 0x008,
  kInvalidNamespace = 0x00b,
  kCommandSequenceError = 0x00c,
  kInvalidPrpOffset = 0x013,
  kSanitizeFailed = 0x01c,
  kSanitizeInProgress = 0x01d,
  kNamespaceWriteProtected = 0x020,
  kCommandInterrupted = 0x021,
  kLbaOutOfRange = 0x080,
  kCapacityExceeded = 0x081,
  kNamespaceNotReady = 0x082,
  kReservationConflict = 0x083,
  kFormatInProgress = 0x084,
  kCompletionQueueInvalid = 0x100,  // command specific
  kInvalidQueueIdentifier = 0x101,
  kInvalidQueueSize = 0x102,
  kAbortLimitExceeded = 0x103,
  kInvalidInterruptVector = 0x108,
  kInvalidLogPage = 0x109,
  kInvalidQueueDeletion = 0x10c,
  kFeatureNotSaveable = 0x10d,
  kWriteFault = 0x280,  // media errors
  kUnrecoveredReadError = 0x281,
  kAccessDenied = 0x286,
};
inline constexpr Status kDoNotRetry = 0x4000;
inline constexpr Status kStatusCodeMask = 0x07ff;  // type and code

/// Controller registers at the start of BAR 0. Doorbells follow at 0x1000.
struct Registers {
  uint64_t cap;
  uint32_t vs;
  uint32_t intms;
  uint32_t intmc;
  uint32_t cc;
  uint32_t reserved;
  uint32_t csts;
  uint32_t nssr;
  uint32_t aqa;
  uint64_t asq;
  uint64_t acq;
};
static_assert(offsetof(Registers, cc) == 0x14 && offsetof(Registers, csts) == 0x1c &&
              offsetof(Registers, aqa) == 0x24 && offsetof(Registers, acq) == 0x30);
inline constexpr uint32_t kDoorbellOffset = 0x1000;

// CAP: entries - 1 in 0..15, contiguous queues required 16, timeout in 500 ms units 24..31,
// doorbell stride exponent 32..35, command sets 37..44 (bit 37: NVM), memory page size min 48..51,
// max 52..55.
inline constexpr uint32_t kCapTimeoutShift = 24;
inline constexpr uint32_t kCapStrideShift = 32;
inline constexpr uint32_t kCapNvmCommandSetShift = 37;
// CC: enable 0, page size 7..10, shutdown 14..15, submission entry size 16..19, completion 20..23.
inline constexpr uint32_t kCcEnable = 1u << 0;
inline constexpr uint32_t kCcShutdownMask = 3u << 14;
inline constexpr uint32_t kCcShutdownNormal = 1u << 14;
inline constexpr uint32_t kCcEntrySizes = (6u << 16) | (4u << 20);  // 64 and 16 bytes
// CSTS: ready 0, controller fatal 1, shutdown status 2..3 (2: complete).
inline constexpr uint32_t kCstsReady = 1u << 0;
inline constexpr uint32_t kCstsFatal = 1u << 1;
inline constexpr uint32_t kCstsShutdownMask = 3u << 2;
inline constexpr uint32_t kCstsShutdownComplete = 2u << 2;
// What a register of a device that is not there any more reads as.
inline constexpr uint32_t kRegisterGone = 0xffffffff;

/// Identify Controller, the fields that this project reads or a controller must fill.
struct IdentifyController {
  uint16_t vendor_id;
  uint16_t subsystem_vendor_id;
  char serial_number[20];
  char model_number[40];
  char firmware_revision[8];
  uint8_t rab;
  uint8_t ieee[3];
  uint8_t cmic;
  uint8_t mdts;  // maximum data transfer: 2^mdts memory pages, 0: no limit
  uint16_t controller_id;
  uint32_t version;
  uint32_t rtd3r;
  uint32_t rtd3e;  // how long a shutdown usually takes, in us; 0: not said
  uint8_t unused1[164];
  uint16_t oacs;
  uint8_t acl;  // abort command limit - 1
  uint8_t aerl;
  uint8_t frmw;
  uint8_t lpa;
  uint8_t elpe;
  uint8_t npss;
  uint8_t unused2[248];
  uint8_t sqes;
  uint8_t cqes;
  uint16_t maxcmd;
  uint32_t nn;
  uint16_t oncs;  // bit 2: Dataset Management, bit 3: Write Zeroes
  uint16_t fuses;
  uint8_t fna;
  uint8_t vwc;  // bit 0: a volatile write cache is present
  uint16_t awun;
  uint16_t awupf;  // LBAs - 1 that a write has wholly or not at all when the power fails
  uint8_t unused3[3566];
};
static_assert(sizeof(IdentifyController) == 4096 && offsetof(IdentifyController, mdts) == 77 &&
              offsetof(IdentifyController, rtd3e) == 88 &&
              offsetof(IdentifyController, oacs) == 256 &&
              offsetof(IdentifyController, sqes) == 512 &&
              offsetof(IdentifyController, vwc) == 525 &&
              offsetof(IdentifyController, awupf) == 528);

struct LbaFormat {
  uint16_t metadata_bytes;
  uint8_t lba_shift;
  uint8_t relative_performance;
};

/// Identify Namespace, likewise.
struct IdentifyNamespace {
  uint64_t nsze;  // size in LBAs
  uint64_t ncap;
  uint64_t nuse;
  uint8_t nsfeat;  // bit 1: the fields about atomic writes below are its own, not the controller's
  uint8_t nlbaf;   // LBA formats - 1
  uint8_t flbas;   // bits 0..3, and with more than 16 formats 5..6 above: index of the one in use
  uint8_t unused1[9];
  uint16_t nawupf;  // LBAs - 1 that a write has wholly or not at all when the power fails
  uint16_t nacwu;
  uint16_t nabsn;
  uint16_t nabo;    // LBA of the first boundary,
  uint16_t nabspf;  // and LBAs - 1 from one to the next: only writes between two; 0: there are none
  uint8_t unused2[82];
  LbaFormat lbaf[64];
  uint8_t unused3[3712];
};
static_assert(sizeof(IdentifyNamespace) == 4096 && offsetof(IdentifyNamespace, nawupf) == 36 &&
              offsetof(IdentifyNamespace, nabspf) == 44 &&
              offsetof(IdentifyNamespace, lbaf) == 128);

/// One range of a Dataset Management command.
inline constexpr uint32_t kDatasetRangesMax = 256;
struct DatasetRange {
  uint32_t context_attributes;
  uint32_t lba_count;
  uint64_t lba;
};
static_assert(sizeof(DatasetRange) == 16);

}  // namespace gofs::format::nvme
