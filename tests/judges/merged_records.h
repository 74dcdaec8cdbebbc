// SPDX-License-Identifier: Apache-2.0
//
// A log that several writers append records to: any order of whole records is right that has each
// writer's in his own.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gofs::judges {

/// What each writer has appended, in order.
using WritersRecords = std::vector<std::vector<std::string>>;

/// Where the records of `log` end, which is all of what the writers have appended, in an order that
/// is right; nothing: it is none. At most 8 writers, 255 records each.
std::optional<std::vector<uint64_t>> record_ends(const WritersRecords& writers,
                                                 std::string_view log);

}  // namespace gofs::judges
