// SPDX-License-Identifier: Apache-2.0
#include "ssd/hosted/io_call.h"

#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>

namespace gofs::ssd {

namespace {

/// Makes what is there read zeros, and where that can be take no room.
int punch_hole(const IoTarget& target, const IoRequest& request) {
  return ::fallocate(target.descriptor, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                     static_cast<off_t>(request.offset), static_cast<off_t>(request.bytes));
}

/// A hole in a file. A device's blocks are discarded, and not zeroed as by fallocate(), which not
/// all devices can that discard, and which some do by writing.
int discard(const IoTarget& target, const IoRequest& request) {
  if (!target.is_device) return punch_hole(target, request);
  uint64_t range[2] = {request.offset, request.bytes};
  return ::ioctl(target.descriptor, BLKDISCARD, range);
}

}  // namespace

int64_t call_kernel(const IoTarget& target, const IoRequest& request) {
  const int descriptor = target.descriptor;
  const auto offset = static_cast<off_t>(request.offset);
  const auto count = static_cast<int>(request.parts.size());
  ssize_t result = 0;
  do {
    switch (request.kind) {
      case IoRequest::Kind::kRead:
        result = ::preadv2(descriptor, request.parts.data(), count, offset, 0);
        break;
      case IoRequest::Kind::kWrite:
        result = ::pwritev2(descriptor, request.parts.data(), count, offset,
                            request.durable ? RWF_DSYNC : 0);
        break;
      case IoRequest::Kind::kSync:
        result = ::fdatasync(descriptor);
        break;
      case IoRequest::Kind::kZero:
        result = punch_hole(target, request);
        break;
      case IoRequest::Kind::kDiscard:
        result = discard(target, request);
        break;
    }
  } while (result < 0 && errno == EINTR);
  return result < 0 ? -errno : result;
}

}  // namespace gofs::ssd
