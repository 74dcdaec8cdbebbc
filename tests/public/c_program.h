// SPDX-License-Identifier: Apache-2.0
//
// For c_api_test.cpp: what a program in C does with a volume.
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

/// Mounts the image, a volume of 64 MiB that is called "label", and tries all calls. Null, or what
/// did not hold and where.
const char* use_volume(const char* image);

#ifdef __cplusplus
}
#endif
