// SPDX-License-Identifier: Apache-2.0
#include "host/serve/unsynced_changes.h"

#include <gtest/gtest.h>

namespace gofs::host {
namespace {

TEST(UnsyncedChanges, a_sync_covers_what_was_answered_before) {
  UnsyncedChanges changes;
  EXPECT_FALSE(changes.any());
  changes.begin();
  EXPECT_TRUE(changes.any());
  changes.end();
  EXPECT_TRUE(changes.any());
  changes.synced(changes.covered());
  EXPECT_FALSE(changes.any());
}

TEST(UnsyncedChanges, a_change_that_is_answered_while_a_sync_is_under_way_is_not_covered) {
  UnsyncedChanges changes;
  changes.begin();
  const auto covered = changes.covered();
  changes.end();
  changes.synced(covered);
  EXPECT_TRUE(changes.any());
  changes.synced(changes.covered());
  EXPECT_FALSE(changes.any());
}

TEST(UnsyncedChanges, nor_is_one_that_is_begun_meanwhile) {
  UnsyncedChanges changes;
  const auto covered = changes.covered();
  changes.begin();
  changes.end();
  changes.synced(covered);
  EXPECT_TRUE(changes.any());
}

TEST(UnsyncedChanges, a_sync_that_is_answered_late_takes_nothing_back) {
  UnsyncedChanges changes;
  const auto early = changes.covered();
  changes.begin();
  changes.end();
  changes.synced(changes.covered());
  changes.synced(early);
  EXPECT_FALSE(changes.any());
}

TEST(UnsyncedChanges, a_change_that_is_never_answered_stays) {
  UnsyncedChanges changes;
  changes.begin();
  changes.begin();
  changes.end();
  changes.synced(changes.covered());
  EXPECT_TRUE(changes.any());
}

}  // namespace
}  // namespace gofs::host
