// SPDX-License-Identifier: Apache-2.0
//
// How names, sizes and inodes are written, for people and as JSON. Names are bytes: what a terminal
// would act upon, or cannot show, is escaped for people; JSON gets every name in hexadecimal too.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "f2fs/inode.h"
#include "host/tree.h"

namespace gofs::cli {

/// The length of the UTF-8 sequence at the head of `text`, 0 if there is none.
size_t utf8_length(std::string_view text);
bool is_utf8(std::string_view text);

/// With \n, \t, \\ and \xHH for control characters, backslashes and what is no UTF-8.
std::string escaped(std::string_view text);

std::string hex(std::string_view bytes);

/// As a JSON string with its quotes; `text` is UTF-8.
std::string json_string(std::string_view text);

/// "regular", "directory", "symlink", "character", "block", "fifo", "socket" or "unknown".
const char* type_name(uint8_t type);

/// As ls -l shows it: "drwxr-xr-x".
std::string mode_text(uint32_t mode);

/// "2026-01-31 12:00:00.000000000 +0000"
std::string time_text(const f2fs::TimeStamp& time);

/// "1.5 GiB"
std::string size_text(uint64_t bytes);

/// An extended attribute: "user.colour = \"green\"" if it is text, an ACL as setfacl takes it (with
/// numbers for names), else hexadecimal with 0x in front.
std::string xattr_text(const host::ExtendedAttribute& xattr);

/// One object, without a newline: path (if UTF-8), path_hex, ino, type, and with a stat all that it
/// holds; with extended attributes a list of [name_hex, value_hex].
std::string entry_json(const host::TreeEntry& entry);

}  // namespace gofs::cli
