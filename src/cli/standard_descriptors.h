// SPDX-License-Identifier: Apache-2.0
//
// Descriptors 0 to 2. Where a process begins without one of them, the next file that it opens gets
// its number: a message would then go into an image.
#pragma once

namespace gofs::cli {

/// Opens those of the descriptors 0 to 2 that are closed, so that what is read from them, or
/// written to them, fails as it did (EBADF). Before anything else is opened. False if that cannot
/// be done.
bool fill_standard_descriptors();

}  // namespace gofs::cli
