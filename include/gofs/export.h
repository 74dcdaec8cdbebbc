// SPDX-License-Identifier: Apache-2.0
//
// What the shared library exports to programs: what is marked GOFS_API, and nothing else.
// GOFS_INTERNAL takes a part of that back. C and C++.
#pragma once

#if defined(__GNUC__)
#define GOFS_API __attribute__((visibility("default")))
#define GOFS_INTERNAL __attribute__((visibility("hidden")))
#else
#define GOFS_API
#define GOFS_INTERNAL
#endif
