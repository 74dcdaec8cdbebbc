// SPDX-License-Identifier: Apache-2.0
//
// Permissions of a file that comes without something that it had: an access list, or its owner.
#pragma once

#include <cstdint>
#include <string_view>

namespace gofs::cli {

inline constexpr char kAccessListName[] = "system.posix_acl_access";

/// `mode` without the access list `list` (in the form of Linux's system calls): of a file that has
/// one the group's bits are the mask, which may be more than the owning group had.
uint32_t mode_without_list(uint32_t mode, std::string_view list);

/// `mode` of a file that got another owner or group: without set-user-ID and set-group-ID.
uint32_t mode_of_others(uint32_t mode);

}  // namespace gofs::cli
