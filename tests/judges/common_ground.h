// SPDX-License-Identifier: Apache-2.0
//
// The directory that all threads of the differential test use at once. What each answer must be
// depends on the others; but a name is made by one of them alone, no name and no record is lost,
// and links are counted right in the end.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "session.h"

namespace gofs::judges {

class CommonGround {
 public:
  explicit CommonGround(uint32_t threads) : records_(threads) {}

  /// By one thread, for a volume that has none of it yet.
  void make(Session& session);
  /// One call of a thread. Throws a Difference, as the others.
  void step(Session& session, uint32_t thread, uint64_t luck);
  /// Whether all is there. Nobody changes it meanwhile.
  void check(Session& session);

 private:
  static constexpr uint32_t kNames = 200;  // that threads make in competition
  static constexpr uint32_t kLinksMost = 500;

  void make_name(Session& session, uint64_t luck);
  void make_link(Session& session, uint32_t thread);
  void append(Session& session, uint32_t thread, uint64_t luck);
  void look(Session& session, uint64_t luck);
  std::string record(uint32_t thread, uint32_t number) const;
  void check_log(Session& session) const;

  /// What has become of a link. A full volume may have had no room for its name, or the other one.
  enum class Link : uint8_t { kNone, kFirstName, kOtherName };

  std::array<std::atomic<uint32_t>, kNames> made_{};  // how often each was made
  std::atomic<uint32_t> links_{0};                    // numbers that were taken
  std::array<std::atomic<Link>, kLinksMost> linked_{};
  struct alignas(64) Records {
    std::vector<uint32_t> bytes;  // of each that was appended; of some a full volume took a part
  };
  std::vector<Records> records_;
};

}  // namespace gofs::judges
