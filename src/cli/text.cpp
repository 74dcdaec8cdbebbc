// SPDX-License-Identifier: Apache-2.0
#include "cli/text.h"

#include <fmt/format.h>

#include <ctime>

namespace gofs::cli {

namespace {

bool is_continuation(char byte) { return (static_cast<uint8_t>(byte) & 0xc0) == 0x80; }

/// C0 and C1 control characters and DEL, as one UTF-8 sequence.
bool is_control(std::string_view sequence) {
  const auto first = static_cast<uint8_t>(sequence[0]);
  if (sequence.size() == 1) return first < 0x20 || first == 0x7f;
  return sequence.size() == 2 && first == 0xc2 && static_cast<uint8_t>(sequence[1]) < 0xa0;
}

/// "u::rw-,u:1000:r--,g::r--,m::rw-,o::---" of an ACL in the form of the system call.
std::string acl_text(std::string_view value) {
  const auto number = [&value](size_t at, size_t bytes) {
    uint32_t result = 0;
    for (size_t i = bytes; i-- > 0;) result = result << 8 | static_cast<uint8_t>(value[at + i]);
    return result;
  };
  std::string text;
  for (size_t at = 4; at + 8 <= value.size(); at += 8) {
    const uint32_t tag = number(at, 2);
    const uint32_t bits = number(at + 2, 2);
    const bool named = tag == format::kAclUser || tag == format::kAclGroup;
    if (!text.empty()) text += ',';
    text += (tag & (format::kAclOwner | format::kAclUser)) != 0         ? 'u'
            : (tag & (format::kAclGroupOwner | format::kAclGroup)) != 0 ? 'g'
            : tag == format::kAclMask                                   ? 'm'
                                                                        : 'o';
    text += ':' + (named ? std::to_string(number(at + 4, 4)) : std::string()) + ':';
    text += (bits & 4) != 0 ? 'r' : '-';
    text += (bits & 2) != 0 ? 'w' : '-';
    text += (bits & 1) != 0 ? 'x' : '-';
  }
  return text;
}

}  // namespace

size_t utf8_length(std::string_view text) {
  if (text.empty()) return 0;
  const auto first = static_cast<uint8_t>(text[0]);
  if (first < 0x80) return 1;
  const size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if (!is_continuation(text[i])) return 0;
  }
  // Overlong forms, surrogates, and what is past the last code point.
  const auto second = static_cast<uint8_t>(text[1]);
  if ((first == 0xe0 && second < 0xa0) || (first == 0xed && second >= 0xa0) ||
      (first == 0xf0 && second < 0x90) || (first == 0xf4 && second >= 0x90)) {
    return 0;
  }
  return length;
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const size_t length = utf8_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string escaped(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const size_t length = utf8_length(text);
    const std::string_view sequence = text.substr(0, length == 0 ? 1 : length);
    text.remove_prefix(sequence.size());
    if (sequence == "\n") {
      result += "\\n";
    } else if (sequence == "\t") {
      result += "\\t";
    } else if (sequence == "\\") {
      result += "\\\\";
    } else if (length == 0 || is_control(sequence)) {
      for (const char byte : sequence) {
        result += "\\x";
        result += hex({&byte, 1});
      }
    } else {
      result += sequence;
    }
  }
  return result;
}

std::string hex(std::string_view bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  text.reserve(bytes.size() * 2);
  for (const char byte : bytes) {
    text += kDigits[static_cast<uint8_t>(byte) >> 4];
    text += kDigits[static_cast<uint8_t>(byte) & 15];
  }
  return text;
}

std::string json_string(std::string_view text) {
  std::string result = "\"";
  for (const char byte : text) {
    if (byte == '"' || byte == '\\') {
      result += '\\';
      result += byte;
    } else if (static_cast<uint8_t>(byte) < 0x20 || byte == 0x7f) {
      result += "\\u00";
      result += hex({&byte, 1});
    } else {
      result += byte;
    }
  }
  return result += '"';
}

const char* type_name(uint8_t type) {
  switch (type) {
    case format::kTypeRegular:
      return "regular";
    case format::kTypeDirectory:
      return "directory";
    case format::kTypeCharDevice:
      return "character";
    case format::kTypeBlockDevice:
      return "block";
    case format::kTypeFifo:
      return "fifo";
    case format::kTypeSocket:
      return "socket";
    case format::kTypeSymlink:
      return "symlink";
    default:
      return "unknown";
  }
}

std::string mode_text(uint32_t mode) {
  constexpr char kTypeLetters[] = "?-dcbpsl";  // by format::FileType
  std::string text(1, kTypeLetters[format::file_type_of_mode(static_cast<uint16_t>(mode)) & 7]);
  for (int shift = 6; shift >= 0; shift -= 3) {
    const uint32_t bits = mode >> shift & 7;
    // The set-user-ID, set-group-ID and sticky bits stand in the place of their execute bits.
    const bool special = (mode >> (9 + shift / 3) & 1) != 0;
    const char letter = shift == 0 ? 't' : 's';
    text += (bits & 4) != 0 ? 'r' : '-';
    text += (bits & 2) != 0 ? 'w' : '-';
    if (special) {
      text += (bits & 1) != 0 ? letter : static_cast<char>(letter - 'a' + 'A');
    } else {
      text += (bits & 1) != 0 ? 'x' : '-';
    }
  }
  return text;
}

std::string time_text(const f2fs::TimeStamp& time) {
  const auto seconds = static_cast<time_t>(time.seconds);
  std::tm parts{};
  if (::gmtime_r(&seconds, &parts) == nullptr) {
    // No calendar goes so far. Before 1970, too, nanoseconds count forwards.
    const bool is_between = time.seconds < 0 && time.nanoseconds != 0;
    return is_between
               ? fmt::format("-{}.{:09} s", -(time.seconds + 1), 1'000'000'000 - time.nanoseconds)
               : fmt::format("{}.{:09} s", time.seconds, time.nanoseconds);
  }
  return fmt::format("{}-{:02}-{:02} {:02}:{:02}:{:02}.{:09} +0000", int64_t{parts.tm_year} + 1900,
                     parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec,
                     time.nanoseconds);
}

std::string size_text(uint64_t bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1024) return fmt::format("{} B", bytes);
  auto value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < std::size(kUnits)) {
    value /= 1024;
    ++unit;
  }
  return fmt::format("{:.1f} {}", value, kUnits[unit]);
}

std::string xattr_text(const host::ExtendedAttribute& xattr) {
  const std::string name = escaped(xattr.name) + " = ";
  if (xattr.name.starts_with("system.posix_acl_")) return name + acl_text(xattr.value);
  bool text = is_utf8(xattr.value);
  for (std::string_view rest = xattr.value; text && !rest.empty();) {
    const std::string_view sequence = rest.substr(0, utf8_length(rest));
    text = !is_control(sequence) || sequence == "\n" || sequence == "\t";
    rest.remove_prefix(sequence.size());
  }
  return name + (text ? fmt::format("\"{}\"", escaped(xattr.value)) : "0x" + hex(xattr.value));
}

std::string entry_json(const host::TreeEntry& entry) {
  std::string text = "{";
  auto out = std::back_inserter(text);
  if (is_utf8(entry.path)) fmt::format_to(out, "\"path\":{},", json_string(entry.path));
  fmt::format_to(out, "\"path_hex\":\"{}\",\"ino\":{},\"type\":\"{}\"", hex(entry.path),
                 entry.entry.ino, type_name(entry.entry.type));
  if (entry.stat) {
    const Stat& stat = *entry.stat;
    const auto time = [&](const char* name, const f2fs::TimeStamp& stamp) {
      fmt::format_to(out, ",\"{}\":[{},{}]", name, stamp.seconds, stamp.nanoseconds);
    };
    fmt::format_to(out, ",\"mode\":{},\"uid\":{},\"gid\":{},\"nlink\":{},\"size\":{},\"blocks\":{}",
                   stat.mode & format::kModePermissionMask, stat.uid, stat.gid, stat.links,
                   stat.size_bytes, stat.blocks_512);
    time("atime", stat.accessed);
    time("mtime", stat.modified);
    time("ctime", stat.changed);
    if (stat.created.seconds != 0 || stat.created.nanoseconds != 0) time("btime", stat.created);
    fmt::format_to(out, ",\"rdev\":[{},{}]", stat.device_major, stat.device_minor);
  }
  if (entry.link_target) fmt::format_to(out, ",\"target_hex\":\"{}\"", hex(*entry.link_target));
  if (entry.xattrs) {
    text += ",\"xattrs\":[";
    for (const host::ExtendedAttribute& xattr : *entry.xattrs) {
      if (text.back() == ']') text += ',';
      fmt::format_to(out, "[\"{}\",\"{}\"]", hex(xattr.name), hex(xattr.value));
    }
    text += ']';
  }
  return text += '}';
}

}  // namespace gofs::cli
