// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace gofs::ssd {

/// Has each page of a new mapping in its place now, zeroed. False with errno where there is no
/// memory for one; before Linux 5.14 that ends the process with SIGBUS, as the first access would
/// where pages are huge or of shared memory.
bool fill_pages(void* base, uint64_t bytes);

}  // namespace gofs::ssd
