// SPDX-License-Identifier: Apache-2.0
//
// The version of GoFS, for C99 and C++. This is the one place that has it: CMake, the packages and
// `gofs --version` take it from here.
#pragma once

#define GOFS_VERSION_MAJOR 0
#define GOFS_VERSION_MINOR 1
#define GOFS_VERSION_PATCH 0

#define GOFS_VERSION_TEXT_(major, minor, patch) #major "." #minor "." #patch
#define GOFS_VERSION_TEXT(major, minor, patch) GOFS_VERSION_TEXT_(major, minor, patch)
/// As text: "0.1.0".
#define GOFS_VERSION GOFS_VERSION_TEXT(GOFS_VERSION_MAJOR, GOFS_VERSION_MINOR, GOFS_VERSION_PATCH)
