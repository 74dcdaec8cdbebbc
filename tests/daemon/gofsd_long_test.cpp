// SPDX-License-Identifier: Apache-2.0
#include "daemon_for_test.h"

namespace gofs::daemon_test {
namespace {

TEST(Gofsd, a_hundred_workers_are_killed_under_load) { kill_workers_under_load(100); }

}  // namespace
}  // namespace gofs::daemon_test
