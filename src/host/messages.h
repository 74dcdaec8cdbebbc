// SPDX-License-Identifier: Apache-2.0
//
// Words for what the layers below say in numbers: the one place where GoFS speaks to people. Whole
// sentences without a full stop or a newline, so that they can stand after "PATH: ".
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "f2fs/begin_writing.h"
#include "gofs/expected.hpp"
#include "nvme/bring_up.h"
#include "nvme/status.h"

namespace gofs::host {

/// The system's words for an errno, positive or negative.
std::string errno_words(int error);

/// The standard's name of a status and its number, or what the driver says.
std::string describe(nvme::CommandStatus status);

/// What a command came to, and where.
std::string describe(const nvme::FailedCommand& failed);

/// Why the SSD did not come up.
std::string describe(const nvme::BringUpResult& result);

/// What is damaged, where, and the value found there.
std::string describe(const f2fs::Corruption& corruption);

/// Why a volume cannot be written to.
std::string describe(const f2fs::WriteResult& result);

/// Why a volume cannot be mounted.
std::string describe(const f2fs::MountResult& result);

/// Names as mkfs.f2fs -O has them, lowest bit first; unknown bits as "0x10000".
std::vector<std::string> feature_names(uint32_t features);

/// Flags of a checkpoint, lowest bit first.
std::vector<std::string> checkpoint_flag_names(uint32_t flags);

/// Words in a row, with `between` between each two.
std::string joined(const std::vector<std::string>& words, const char* between);

/// A path as messages have it: an empty one is shown as "".
std::string shown_path(const std::string& path);

/// An error about `subject` (a path, usually): "subject: words".
Error make_error(int error, const std::string& subject);
Error make_error(int error, const std::string& subject, const std::string& words);

}  // namespace gofs::host
