// SPDX-License-Identifier: Apache-2.0
//
// The four moves of a queue pair, one at a time, against a device that the test plays itself: it
// looks at entries and doorbells and posts the completions it likes, right ones and wrong ones.
#include "nvme/queue_pair.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "nvme/layout.h"
#include "testing/ssd_rig.hpp"

namespace gofs::nvme {
namespace {

using format::nvme::CompletionEntry;
using format::nvme::SubmissionEntry;
using gofs::testing::failed_commands;
using gofs::testing::run_alone;
using gofs::testing::TestArena;

/// A queue pair and the other end of it.
class Ends {
 public:
  explicit Ends(uint32_t depth, uint64_t first_ticket = 0)
      : queue_(detail::make_queue(arena_.space(), nullptr, 1, depth)) {
    Device device{};
    device.controller.bar = arena_.bytes(2 * kBlockBytes);
    reset_queue(device, queue_, depth);
    // As if the laps before had been: the device begins at index 0 with phase 1.
    EXPECT_EQ(first_ticket % (2 * uint64_t{depth}), 0u);
    const auto lap = static_cast<uint32_t>(first_ticket / depth);
    queue_.next_ticket = queue_.tail = queue_.head = first_ticket;
    for (uint32_t i = 0; i < depth; ++i) {
      queue_.slots[i].lap = queue_.slots[i].issued = lap;
      queue_.slots[i].done = uint64_t{lap} << 32;
    }
  }
  ~Ends() { arena_.space().release_belongings(nullptr); }

  QueuePair& queue() { return queue_; }
  uint32_t tail_doorbell() const { return *queue_.submission_doorbell; }
  uint32_t head_doorbell() const { return *queue_.completion_doorbell; }

  /// Entries that the doorbell made known, oldest first.
  std::vector<SubmissionEntry> fetch() {
    std::vector<SubmissionEntry> entries;
    for (; fetched_ != tail_doorbell(); fetched_ = (fetched_ + 1) % queue_.depth()) {
      entries.push_back(queue_.submission[fetched_]);
    }
    return entries;
  }
  void post(uint16_t cid, uint32_t status = 0, uint32_t dw0 = 0) {
    CompletionEntry& entry = queue_.completion[posted_ % queue_.depth()];
    entry.cid = cid;
    entry.dw0 = dw0;
    const bool odd_lap = posted_ / queue_.depth() % 2 == 1;
    entry.status = static_cast<uint16_t>(status << 1 | (odd_lap ? 0 : 1));
    ++posted_;
  }

 private:
  TestArena arena_;
  QueuePair queue_;
  uint32_t fetched_ = 0;
  uint32_t posted_ = 0;
};

SubmissionEntry entry_of(const QueuePair& queue, const Token& token) {
  SubmissionEntry entry{};
  entry.cid = queue.cid_of(token.position);
  return entry;
}

/// One command by one thread, up to the doorbell.
Token submit_one(QueuePair& queue, Mailbox* mailbox = nullptr) {
  const simt::Warp warp;
  const Token token = reserve(warp, queue, 1);
  EXPECT_TRUE(admitted(queue, token));
  publish(queue, token, entry_of(queue, token), mailbox);
  ring(warp, queue);
  return token;
}

constexpr uint32_t kDepths[] = {2, 3, 7, 13, 64};

TEST(QueuePairTest, lanes_get_consecutive_tickets) {
  Ends ends(16);
  run_alone(4, [&](const simt::Warp& warp) {
    const Token token = reserve(warp, ends.queue(), 0b1011);
    const uint64_t wanted[] = {0, 1, 0, 2};
    if (warp.thread_rank() != 2) {
      EXPECT_EQ(token.ticket, wanted[warp.thread_rank()]);
      EXPECT_EQ(token.position.index, wanted[warp.thread_rank()]);
    }
    const Token next = reserve(warp, ends.queue(), 0b0100);
    if (warp.thread_rank() == 2) {
      EXPECT_EQ(next.ticket, 3u);
    }
  });
}

TEST(QueuePairTest, full_ring_admits_nobody_until_the_oldest_two_are_retired_in_turn) {
  for (const uint32_t depth : kDepths) {
    Ends ends(depth);
    std::vector<Token> tokens;
    for (uint32_t i = 0; i + 1 < depth; ++i) tokens.push_back(submit_one(ends.queue()));
    EXPECT_EQ(ends.fetch().size(), depth - 1);
    const Token waiting = reserve(simt::Warp(), ends.queue(), 1);
    EXPECT_FALSE(admitted(ends.queue(), waiting)) << depth;
    // Its slot was never used; the slot after it is the oldest command's.
    retire(ends.queue(), tokens[0]);
    EXPECT_TRUE(admitted(ends.queue(), waiting)) << depth;
  }
}

TEST(QueuePairTest, retiring_out_of_order_admits_only_behind_the_oldest) {
  Ends ends(4);
  const Token a = submit_one(ends.queue());
  const Token b = submit_one(ends.queue());
  const Token c = submit_one(ends.queue());
  const Token waiting = reserve(simt::Warp(), ends.queue(), 1);
  retire(ends.queue(), b);
  retire(ends.queue(), c);
  EXPECT_FALSE(admitted(ends.queue(), waiting));
  retire(ends.queue(), a);
  EXPECT_TRUE(admitted(ends.queue(), waiting));
}

TEST(QueuePairTest, doorbell_never_passes_an_entry_that_is_not_written) {
  Ends ends(8);
  const simt::Warp warp;
  const Token first = reserve(warp, ends.queue(), 1);
  const Token second = reserve(warp, ends.queue(), 1);
  publish(ends.queue(), second, entry_of(ends.queue(), second), nullptr);
  ring(warp, ends.queue());
  EXPECT_EQ(ends.tail_doorbell(), 0u);
  publish(ends.queue(), first, entry_of(ends.queue(), first), nullptr);
  ring(warp, ends.queue());
  EXPECT_EQ(ends.tail_doorbell(), 2u);
  EXPECT_EQ(ends.queue().doorbells, 1u);
  ring(warp, ends.queue());
  EXPECT_EQ(ends.queue().doorbells, 1u) << "nothing new, no doorbell";
}

TEST(QueuePairTest, a_warp_rings_once_for_all_its_lanes) {
  Ends ends(16);
  run_alone(4, [&](const simt::Warp& warp) {
    const Token token = reserve(warp, ends.queue(), 0b1111);
    publish(ends.queue(), token, entry_of(ends.queue(), token), nullptr);
    warp.sync();
    ring(warp, ends.queue());
  });
  EXPECT_EQ(ends.tail_doorbell(), 4u);
  EXPECT_EQ(ends.queue().doorbells, 1u);
}

/// Runs several laps, completions in reverse order within each round, from `first_ticket` on.
void run_laps(uint32_t depth, uint64_t first_ticket) {
  Ends ends(depth, first_ticket);
  QueuePair& queue = ends.queue();
  const simt::Warp warp;
  for (uint32_t round = 0; round < 5 * depth; ++round) {
    const uint32_t batch = round % (depth - 1) + 1;
    std::vector<Token> tokens;
    for (uint32_t i = 0; i < batch; ++i) tokens.push_back(submit_one(queue));
    std::vector<SubmissionEntry> entries = ends.fetch();
    ASSERT_EQ(entries.size(), batch);
    std::reverse(entries.begin(), entries.end());
    for (const SubmissionEntry& entry : entries) ends.post(entry.cid, 0, entry.cid + 7u);
    reap(warp, queue);
    for (const Token& token : tokens) {
      CommandStatus status = ~0u;
      ASSERT_TRUE(completed(queue, token, status)) << depth << " " << token.ticket;
      ASSERT_EQ(status, 0u);
      ASSERT_EQ(queue.slots[token.position.index].dw0, queue.cid_of(token.position) + 7u);
      retire(queue, token);
    }
    ASSERT_EQ(ends.head_doorbell(), queue.head % depth);
  }
  EXPECT_EQ(queue.spurious, 0u);
  EXPECT_EQ(failed_commands(queue), 0u);
  EXPECT_EQ(queue.head, queue.next_ticket);
}

TEST(QueuePairTest, runs_laps_at_odd_depths) {
  for (const uint32_t depth : kDepths) run_laps(depth, 0);
}

TEST(QueuePairTest, runs_over_the_end_of_32_bit_laps) {
  for (const uint32_t depth : kDepths) run_laps(depth, uint64_t{depth} * 0xfffffffe);
}

TEST(QueuePairTest, runs_over_the_end_of_31_bit_laps) {
  for (const uint32_t depth : kDepths) run_laps(depth, uint64_t{depth} * 0x7ffffffe);
}

TEST(QueuePairTest, completions_nobody_waits_for_are_counted_and_harm_nobody) {
  Ends ends(4);
  QueuePair& queue = ends.queue();
  const simt::Warp warp;
  ends.post(0);       // before any command
  ends.post(2);       // a slot that was never used
  ends.post(0xffff);  // no slot's
  reap(warp, queue);
  EXPECT_EQ(queue.spurious, 3u);
  const Token token = submit_one(queue);
  CommandStatus status = 0;
  EXPECT_FALSE(completed(queue, token, status));
  ends.post(queue.cid_of(token.position));
  reap(warp, queue);
  EXPECT_TRUE(completed(queue, token, status));
}

TEST(QueuePairTest, a_repeated_completion_is_believed_once) {
  for (const uint32_t width : {1u, 4u}) {
    Ends ends(8);
    QueuePair& queue = ends.queue();
    const Token token = submit_one(queue);
    Mailbox mailbox{1, 0};
    const Token reporting = submit_one(queue, &mailbox);
    // Within one window of the reaping warp, and again later.
    for (uint32_t i = 0; i < 3; ++i) {
      ends.post(queue.cid_of(token.position));
      ends.post(queue.cid_of(reporting.position));
    }
    run_alone(width, [&](const simt::Warp& warp) { reap(warp, queue); });
    EXPECT_EQ(queue.spurious, 4u) << width;
    EXPECT_EQ(mailbox.remaining, 0u);
    retire(queue, token);
    ends.post(queue.cid_of(token.position));
    reap(simt::Warp(), queue);
    EXPECT_EQ(queue.spurious, 5u);
  }
}

TEST(QueuePairTest, a_completion_of_an_earlier_lap_does_not_end_a_later_command) {
  Ends ends(3);
  QueuePair& queue = ends.queue();
  const simt::Warp warp;
  CommandStatus status = 0;
  const Token old = submit_one(queue);
  for (const Token* last = &old; last != nullptr; last = nullptr) {
    ends.post(queue.cid_of(last->position));
    reap(warp, queue);
    ASSERT_TRUE(completed(queue, *last, status));
    retire(queue, *last);
  }
  for (uint32_t i = 0; i < 2; ++i) {
    const Token token = submit_one(queue);
    ends.post(queue.cid_of(token.position));
    reap(warp, queue);
    ASSERT_TRUE(completed(queue, token, status));
    retire(queue, token);
  }
  const Token now = submit_one(queue);
  ASSERT_EQ(now.position.index, old.position.index);
  ends.post(queue.cid_of(old.position), 0x281);
  reap(warp, queue);
  EXPECT_FALSE(completed(queue, now, status));
  EXPECT_EQ(queue.spurious, 1u);
}

TEST(QueuePairTest, mailbox_counts_down_keeps_an_error_and_retires_by_itself) {
  Ends ends(4);
  QueuePair& queue = ends.queue();
  const simt::Warp warp;
  Mailbox mailbox{3, 0};
  std::vector<Token> tokens;
  for (uint32_t i = 0; i < 3; ++i) tokens.push_back(submit_one(queue, &mailbox));
  ends.post(queue.cid_of(tokens[2].position));
  reap(warp, queue);
  EXPECT_EQ(mailbox.remaining, 2u);
  ends.post(queue.cid_of(tokens[0].position), format::nvme::kUnrecoveredReadError);
  ends.post(queue.cid_of(tokens[1].position));
  reap(warp, queue);
  EXPECT_EQ(mailbox.remaining, 0u);
  EXPECT_EQ(mailbox.status, format::nvme::kUnrecoveredReadError);
  EXPECT_EQ(failed_commands(queue), 1u);
  for (uint32_t i = 0; i < 3; ++i) submit_one(queue);
}

TEST(QueuePairTest, status_keeps_do_not_retry_and_is_decoded) {
  Ends ends(4);
  QueuePair& queue = ends.queue();
  const Token token = submit_one(queue);
  ends.post(queue.cid_of(token.position), format::nvme::kLbaOutOfRange | format::nvme::kDoNotRetry);
  reap(simt::Warp(), queue);
  CommandStatus status = 0;
  ASSERT_TRUE(completed(queue, token, status));
  EXPECT_EQ(status, uint32_t{format::nvme::kLbaOutOfRange | format::nvme::kDoNotRetry});
  EXPECT_EQ(to_errno(status), -ENOSPC);
  EXPECT_STREQ(status_name(status), "LBA Out of Range");
}

// "More": a log page has something about the command.
TEST(QueuePairTest, success_is_success_whatever_bits_stand_beside_it) {
  constexpr uint32_t kMore = 0x2000;
  for (const uint32_t status : {kMore, kMore | format::nvme::kDoNotRetry}) {
    Ends ends(4);
    QueuePair& queue = ends.queue();
    const Token token = submit_one(queue);
    ends.post(queue.cid_of(token.position), status);
    reap(simt::Warp(), queue);
    CommandStatus found = kStatusTimedOut;
    ASSERT_TRUE(completed(queue, token, found));
    EXPECT_EQ(found, 0u);
    EXPECT_EQ(failed_commands(queue), 0u);
  }
}

TEST(StatusTest, everything_but_success_is_an_errno_and_has_a_name) {
  EXPECT_EQ(to_errno(0), 0);
  for (CommandStatus status = 1; status < 0x8000; ++status) {
    ASSERT_LT(to_errno(status), 0) << status;
    ASSERT_STRNE(status_name(status), "");
  }
  EXPECT_EQ(to_errno(kStatusTimedOut), -ETIMEDOUT);
  EXPECT_EQ(to_errno(kStatusDeviceFailed), -EIO);
}

}  // namespace
}  // namespace gofs::nvme
