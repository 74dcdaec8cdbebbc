// SPDX-License-Identifier: Apache-2.0
//
// What a server says to whoever has started it. It goes on where nobody listens: what cannot be
// written at once, to a pipe that is full or a disk that is, is not said.
#pragma once

#include <string>

namespace gofs::daemon {

/// A line, on standard output.
void say(const std::string& line);
/// The same of what went wrong, on standard error.
void complain(const std::string& message);

}  // namespace gofs::daemon
