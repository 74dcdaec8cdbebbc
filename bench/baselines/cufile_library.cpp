// SPDX-License-Identifier: Apache-2.0
#include "cufile_library.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>

namespace gofs::bench {

std::unique_ptr<CufileLibrary> CufileLibrary::make(std::string& why) {
  // Where the driver nvidia-fs is missing, reading and copying is what remains.
  (void)::setenv("CUFILE_ALLOW_COMPAT_MODE", "true", 0);
  std::unique_ptr<CufileLibrary> library(new CufileLibrary());
  why = library->load();
  if (why.empty()) why = library->open();
  if (!why.empty()) return nullptr;
  return library;
}

CufileLibrary::~CufileLibrary() {
  if (opened_) (void)driver_close_();
  // Its threads may outlive the closing, so it stays in memory.
}

std::string CufileLibrary::load() {
  for (const char* const name : {"libcufile.so.0", "libcufile.so", GOFS_CUFILE_LIBRARY}) {
    if (library_ == nullptr && *name != 0) library_ = ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
  }
  if (library_ == nullptr) {
    const char* const words = ::dlerror();
    return words != nullptr ? words : "libcufile.so.0 cannot be loaded";
  }
  find("cuFileDriverOpen", driver_open_);
  find("cuFileDriverClose", driver_close_);
  find("cuFileDriverGetProperties", driver_properties_);
  find("cuFileHandleRegister", handle_register);
  find("cuFileHandleDeregister", handle_deregister);
  find("cuFileBufRegister", buf_register);
  find("cuFileBufDeregister", buf_deregister);
  find("cuFileRead", read);
  find("cuFileWrite", write);
  return missing_.empty() ? std::string() : "libcufile has no " + missing_;
}

template <typename Function>
void CufileLibrary::find(const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library_, name));
  if (function == nullptr && missing_.empty()) missing_ = name;
}

std::string CufileLibrary::open() {
  const CUfileError_t opened = driver_open_();
  if (opened.err != CU_FILE_SUCCESS) return "cuFileDriverOpen: " + describe(opened);
  opened_ = true;
  CUfileDrvProps_t properties{};
  const CUfileError_t asked = driver_properties_(&properties);
  if (asked.err != CU_FILE_SUCCESS) {
    mode_ = "libcufile, mode not known: cuFileDriverGetProperties: " + describe(asked);
    return {};
  }
  const auto& driver = properties.nvfs;
  const bool direct = driver.major_version != 0 || driver.minor_version != 0;
  mode_ = direct ? fmt::format("libcufile, GPUDirect Storage, nvidia-fs {}.{}",
                               driver.major_version, driver.minor_version)
                 : "libcufile, compatibility mode (no nvidia-fs)";
  return {};
}

std::string describe(const CUfileError_t& error) {
  return fmt::format("error {} (CUDA {})", static_cast<int>(error.err),
                     static_cast<int>(error.cu_err));
}

}  // namespace gofs::bench
