// SPDX-License-Identifier: Apache-2.0
#include "host/serve/servant.h"

#include <algorithm>
#include <cmath>

#include "host/serve/serve_bodies.h"
#include "host/shared_array.h"

namespace gofs::host {

namespace {

/// Warps of a block that serves: one looks, seven perform.
constexpr uint32_t kWarpsOfBlock = 8;
/// A launch costs some 10 us. What waits until the GPU is idle, as the release of memory does,
/// waits for the end of a turn; and all clients wait for the longest call of one that is over.
constexpr uint64_t kTurnNs = 20'000'000;
constexpr uint64_t kTurnNsMax = 1'000'000'000;
/// Of the warps that perform calls: where more were busy there are to be more, and the reverse.
constexpr double kManyBusy = 0.75;
constexpr double kFewBusy = 0.25;

class WarpServant final : public Servant {
 public:
  WarpServant(const ServedFilesystem& served, serve::Server* server)
      : served_(served),
        room_(served.backend->memory(), 1),
        params_(served.backend->shared_memory(), 1) {
    params_[0] = {server, room_.data(), 0};
  }
  End serve(uint64_t idle_ns, bool) override {
    params_[0].idle_ns = idle_ns;
    const bool ran = served_.run(kernels::bodies::kServe, {1, 1}, params_.data());
    return ran ? End::kRest : End::kFailed;
  }

 private:
  const ServedFilesystem& served_;
  const SharedArray<serve::CallRoom> room_;
  const SharedArray<kernels::ServeParams> params_;
};

class GridServant final : public Servant {
 public:
  GridServant(const ServedFilesystem& served, serve::Server* server, uint32_t blocks_max)
      : served_(served),
        blocks_max_(blocks_max),
        grid_(served.backend->memory(), 1),
        rooms_(served.backend->memory(), size_t{blocks_max} * kWarpsOfBlock),
        params_(served.backend->shared_memory(), 1) {
    params_[0].server = server;
    params_[0].grid = grid_.data();
    params_[0].rooms = rooms_.data();
    params_[0].turn_ns = kTurnNs;
    params_[0].turn_ns_max = kTurnNsMax;
  }

  End serve(uint64_t idle_ns, bool for_kernels) override {
    kernels::ServeTurnParams& params = params_[0];
    params.idle_ns = idle_ns;
    // Blocks of a client that fill the GPU, and wait for answers, would take the place of a turn
    // that ends, and leave the next one none.
    params.busy_many = blocks_ < blocks_max_ && !for_kernels ? many_busy() : ~0u;
    ++params.turn;
    const uint32_t threads = kWarpsOfBlock * served_.backend->warp_width();
    if (!served_.run(kernels::bodies::kServeTurn, {blocks_, threads}, &params)) return End::kFailed;
    suit_blocks(params.busy_most);
    return params.rests != 0 ? End::kRest : End::kTurn;
  }

 private:
  /// Of the warps, so many are for calls.
  uint32_t for_calls() const { return blocks_ * kWarpsOfBlock - 1; }
  /// So many busy ones are many.
  uint32_t many_busy() const { return static_cast<uint32_t>(std::ceil(kManyBusy * for_calls())); }
  void suit_blocks(uint32_t busy) {
    if (busy >= many_busy()) {
      blocks_ = std::min(2 * blocks_, blocks_max_);
    } else if (busy <= kFewBusy * for_calls()) {
      blocks_ = std::max(blocks_ / 2, 1u);
    }
  }

  const ServedFilesystem& served_;
  const uint32_t blocks_max_;
  const SharedArray<kernels::ServingGrid> grid_;
  const SharedArray<serve::CallRoom> rooms_;
  const SharedArray<kernels::ServeTurnParams> params_;
  uint32_t blocks_ = 1;
};

}  // namespace

std::unique_ptr<Servant> make_warp_servant(const ServedFilesystem& served, serve::Server* server) {
  return std::make_unique<WarpServant>(served, server);
}

std::unique_ptr<Servant> make_grid_servant(const ServedFilesystem& served, serve::Server* server,
                                           uint32_t blocks_max) {
  return std::make_unique<GridServant>(served, server, blocks_max);
}

}  // namespace gofs::host
