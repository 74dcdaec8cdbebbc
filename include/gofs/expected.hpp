// SPDX-License-Identifier: Apache-2.0
//
// A value or an Error: what every host operation of GoFS returns. The interface is that of
// std::expected<T, Error>, which libraries have only since C++23; a type of our own keeps one
// layout in programs of any language level, whichever level the library itself was built with.
//
//   gofs::Expected<int> fd = volume.open("/data/a");
//   if (!fd) { fprintf(stderr, "%s\n", fd.error().message.c_str()); return 1; }
//   use(*fd);
#pragma once

#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>

namespace gofs {

/// What went wrong, for programs and for people.
struct Error {
  int code = 0;         // an errno, positive
  std::string message;  // one sentence, without a newline of its own; names the path or structure
                        // at fault, with the bytes that it has
};

/// Thrown by Expected::value() where there is none. Nothing else in GoFS throws. In programs that
/// are compiled without exceptions (-fno-exceptions) its sentence goes to stderr, and abort()
/// follows.
class BadExpectedAccess : public std::runtime_error {
 public:
  explicit BadExpectedAccess(const Error& error)
      : std::runtime_error(error.message), code_(error.code) {}
  int code() const { return code_; }

  [[noreturn]] static void raise(const Error& error) {
#if defined(__cpp_exceptions)
    throw BadExpectedAccess(error);
#else
    std::fprintf(stderr, "%s\n", error.message.c_str());
    std::abort();
#endif
  }

 private:
  int code_;
};

template <typename T>
class [[nodiscard]] Expected {
 public:
  using value_type = T;
  using error_type = Error;

  Expected(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Expected(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool has_value() const { return state_.index() == 0; }
  explicit operator bool() const { return has_value(); }

  /// Only where has_value().
  T& operator*() & { return *std::get_if<0>(&state_); }
  const T& operator*() const& { return *std::get_if<0>(&state_); }
  T&& operator*() && { return std::move(*std::get_if<0>(&state_)); }
  T* operator->() { return std::get_if<0>(&state_); }
  const T* operator->() const { return std::get_if<0>(&state_); }
  /// Only where !has_value().
  const Error& error() const { return *std::get_if<1>(&state_); }
  Error& error() { return *std::get_if<1>(&state_); }

  T& value() & {
    require_value();
    return **this;
  }
  const T& value() const& {
    require_value();
    return **this;
  }
  T&& value() && {
    require_value();
    return std::move(**this);
  }
  template <typename U>
  T value_or(U&& other) const& {
    return has_value() ? **this : static_cast<T>(std::forward<U>(other));
  }
  template <typename U>
  T value_or(U&& other) && {
    return has_value() ? std::move(**this) : static_cast<T>(std::forward<U>(other));
  }

 private:
  void require_value() const {
    if (!has_value()) BadExpectedAccess::raise(error());
  }

  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Expected<void> {
 public:
  using value_type = void;
  using error_type = Error;

  Expected() = default;
  Expected(Error error) : failed_(true), error_(std::move(error)) {}

  bool has_value() const { return !failed_; }
  explicit operator bool() const { return has_value(); }
  void operator*() const {}
  const Error& error() const { return error_; }
  Error& error() { return error_; }
  void value() const {
    if (failed_) BadExpectedAccess::raise(error_);
  }

 private:
  bool failed_ = false;
  Error error_;
};

}  // namespace gofs
