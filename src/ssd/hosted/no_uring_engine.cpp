// SPDX-License-Identifier: Apache-2.0
//
// A build without liburing.
#include <cerrno>

#include "ssd/hosted/io_engine.h"
#include "ssd/system_failure.h"

namespace gofs::ssd {

std::unique_ptr<IoEngine> make_uring_engine(const IoTarget&) {
  fail_with(ENOSYS, "built without liburing");
}

int uring_refusal() { return ENOSYS; }

}  // namespace gofs::ssd
