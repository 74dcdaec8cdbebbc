// SPDX-License-Identifier: Apache-2.0
//
// The driver's memory of a command, as the host's calls name it. Host only.
#pragma once

#include <sys/uio.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "ssd/prp.h"

namespace gofs::ssd {

/// Reads the parts of a command's memory, one after another; pages that lie together are one part.
/// Takes no memory: a thread in the midst of a file system call goes through it.
class PrpParts {
 public:
  /// check_prps() passed.
  PrpParts(uint64_t prp1, uint64_t prp2, uint32_t page_count, uint64_t bytes)
      : prp1_(prp1), prp2_(prp2), page_count_(page_count), left_(bytes) {}

  /// False: there is none; status() says whether that is because all were read.
  bool next(iovec& part) {
    part = std::exchange(ahead_, {});
    while (left_ != 0) {
      const PrpEntry page = prp_page(prp1_, prp2_, page_count_, index_++);
      if (page.status != format::nvme::kSuccess) {
        status_ = page.status;
        return false;
      }
      const iovec here = {reinterpret_cast<void*>(page.address),
                          std::min(left_, kBlockBytes - (page.address & kPageMask))};
      left_ -= here.iov_len;
      if (part.iov_len == 0) {
        part = here;
      } else if (static_cast<char*>(part.iov_base) + part.iov_len == here.iov_base) {
        part.iov_len += here.iov_len;
      } else {
        ahead_ = here;
        return true;
      }
    }
    return part.iov_len != 0;
  }

  /// What the command is told.
  format::nvme::Status status() const {
    using namespace format::nvme;
    return status_ == kInvalidPrpOffset ? Status{kInvalidPrpOffset | kDoNotRetry} : status_;
  }

 private:
  const uint64_t prp1_;
  const uint64_t prp2_;
  const uint32_t page_count_;
  uint32_t index_ = 0;
  uint64_t left_;
  iovec ahead_{};  // the first page of the next part
  format::nvme::Status status_ = format::nvme::kSuccess;
};

}  // namespace gofs::ssd
