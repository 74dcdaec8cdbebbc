// SPDX-License-Identifier: Apache-2.0
//
// The bodies of kernels/serve.h and kernels/channel.h. Apart from those of volumes, since only
// servers have them: they are the whole file system once more, for warps that work for clients.
#pragma once

#include "kernels/body.h"

namespace gofs::kernels::bodies {

extern const Body kServe;      // one warp
extern const Body kServeTurn;  // as many warps as there are to serve clients
extern const Body kChannel;    // one warp

}  // namespace gofs::kernels::bodies
