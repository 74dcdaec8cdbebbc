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
  /// As VolumeState::begin().
  std::function<std::unique_ptr<kernels::Begun>(const kernels::Body& body,
                                                const kernels::Grid& grid, void* params)>
      begin;
};

class Servant {
 public:
  virtual ~Servant() = default;
  enum class End {
    kRest,    // nothing has come for `idle_ns`
    kTurn,    // it is to go on
    kFailed,  // the backend runs nothing
  };
  /// Performs what clients ask for, for a while.
  virtual End serve(uint64_t idle_ns) = 0;
  /// Whether its warps look at the memory of clients while no thread is in serve().
  virtual bool is_at_work() const { return false; }
  /// Its turns have numbers from 1 on: the last one that was begun; and those up to which number
  /// have ended, all of them. From any thread.
  virtual uint32_t turns_begun() const { return 0; }
  virtual uint32_t turns_ended() const { return 0; }
  /// What the turn that is under way was begun for has changed: the next one is to begin soon. From
  /// any thread.
  virtual void end_turn() {}
  /// The server ends: so do all turns. From any thread.
  virtual void stop() {}
};

/// A warp, where the backend's warps are threads of this process.
std::unique_ptr<Servant> make_warp_servant(const ServedFilesystem& served, serve::Server* server);

/// Warps of one or several blocks, for memory that is far from them (ServeTurn): as many blocks as
/// there is work for, `blocks_max` at the most. `keeps_place` says, whenever a turn may begin,
/// whether it is to keep its place, and not to rest.
std::unique_ptr<Servant> make_grid_servant(const ServedFilesystem& served, serve::Server* server,
                                           uint32_t blocks_max, std::function<bool()> keeps_place);

}  // namespace gofs::host
