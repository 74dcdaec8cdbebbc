# SPDX-License-Identifier: Apache-2.0
"""What may be wrong with a kernel, in the words of CUDA's compiler and linker."""


class CompileError(RuntimeError):
    """The source is wrong, or an option or the architecture is. The words are NVRTC's log."""


class LinkError(RuntimeError):
    """The kernel cannot be linked with the device code. The words are nvJitLink's log."""
