// SPDX-License-Identifier: Apache-2.0
//
// Warps that perform the calls of clients, as a thread of the host keeps them at work.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "kernels/backend.h"
#include "kernels/serve.h"

namespace gofs::host {

/// What is served. It outlives the server.
struct ServedFilesystem {
  std::string name;  // for messages
  vfs::Filesystem* fs;
  kernels::Backend* backend;
  /// As VolumeState::run().
  std::function<bool(const kernels::Body& body, const kernels::Grid& grid, void* params)> run;
};

class Servant {
 public:
  virtual ~Servant() = default;
  enum class End {
    kRest,    // the server ends, or nothing has come for `idle_ns`
    kTurn,    // it is to go on
    kFailed,  // the backend runs nothing
  };
  /// Performs what clients ask for, for a while; `for_kernels`: kernels of theirs may be among
  /// them.
  virtual End serve(uint64_t idle_ns, bool for_kernels) = 0;
};

/// A warp, where the backend's warps are threads of this process.
std::unique_ptr<Servant> make_warp_servant(const ServedFilesystem& served, serve::Server* server);

/// Warps of one or several blocks, for memory that is far from them (ServeTurnParams): as many
/// blocks as there is work for, `blocks_max` at the most.
std::unique_ptr<Servant> make_grid_servant(const ServedFilesystem& served, serve::Server* server,
                                           uint32_t blocks_max);

}  // namespace gofs::host
