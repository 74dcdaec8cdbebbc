// SPDX-License-Identifier: Apache-2.0
//
// For tests only: what a child of fork() does.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

namespace gofs::testing {

/// What `child` returns, in a child of fork(); 100 and more: it was ended by a signal.
inline int in_child(const std::function<int()>& child) {
  const pid_t id = ::fork();
  if (id == 0) {
    ::alarm(20);
    ::_exit(child());
  }
  int status = 0;
  EXPECT_EQ(::waitpid(id, &status, 0), id);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 100 + WTERMSIG(status);
}

}  // namespace gofs::testing
