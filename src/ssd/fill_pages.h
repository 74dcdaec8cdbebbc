// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace gofs::ssd {

/// Has each page of a mapping that can be written in its place now, zeroed where it is new. False
/// with errno where there is no memory for one: the first access would end the process with SIGBUS,
/// where pages are huge or of shared memory.
bool fill_pages(void* base, uint64_t bytes);

}  // namespace gofs::ssd
