// SPDX-License-Identifier: Apache-2.0
#define GOFS_CORE_CALL template
#include "testing/core_calls.hpp"
