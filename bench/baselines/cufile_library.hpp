// SPDX-License-Identifier: Apache-2.0
//
// libcufile, loaded when it is wanted, so that the program runs without it.
#pragma once

#include <cufile.h>

#include <memory>
#include <string>

namespace gofs::bench {

/// Its functions, under their own names; open from make() on.
class CufileLibrary {
 public:
  /// Null where it cannot be loaded or opened; `why` then says what is missing.
  static std::unique_ptr<CufileLibrary> make(std::string& why);
  ~CufileLibrary();
  CufileLibrary(const CufileLibrary&) = delete;
  CufileLibrary& operator=(const CufileLibrary&) = delete;

  decltype(&::cuFileHandleRegister) handle_register = nullptr;
  decltype(&::cuFileHandleDeregister) handle_deregister = nullptr;
  decltype(&::cuFileBufRegister) buf_register = nullptr;
  decltype(&::cuFileBufDeregister) buf_deregister = nullptr;
  decltype(&::cuFileRead) read = nullptr;
  decltype(&::cuFileWrite) write = nullptr;

  /// "GPUDirect Storage", or "compatibility mode" where the driver nvidia-fs is not there.
  const std::string& mode() const { return mode_; }

 private:
  CufileLibrary() = default;
  std::string load();
  std::string open();
  template <typename Function>
  void find(const char* name, Function& function);

  void* library_ = nullptr;
  bool opened_ = false;
  std::string missing_;  // the first function that is
  decltype(&::cuFileDriverOpen) driver_open_ = nullptr;
  decltype(&::cuFileDriverOpen) driver_close_ = nullptr;
  decltype(&::cuFileDriverGetProperties) driver_properties_ = nullptr;
  std::string mode_;
};

/// For messages.
std::string describe(const CUfileError_t& error);

}  // namespace gofs::bench
