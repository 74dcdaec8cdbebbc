#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""libgofs_device as it is installed: kernels outside of the tree that link it, by hand and by
find_package. What they do is seen where there is a GPU; elsewhere that they say so.

$GOFS_BUILD_DIR has the host library, $GOFS_DEVICE_BUILD_DIR the device library, if that is another.
"""
import os
import pathlib
import re
import shutil
import subprocess
import unittest

from package import BUILD, HERE, ROOT, PackageTest, run

DEVICE_BUILD = pathlib.Path(os.environ.get("GOFS_DEVICE_BUILD_DIR", BUILD)).resolve()
NVCC = run(ROOT / "scripts/nvcc.sh").strip()
HAS_GPU = shutil.which("nvidia-smi") and b"GPU" in subprocess.run(
    ["nvidia-smi", "-L"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=60,
    check=False).stdout
FILES = ("/architecture.md", "/memory_model.md")


class DeviceTest(PackageTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if DEVICE_BUILD != BUILD:
            run("cmake", "--install", DEVICE_BUILD, "--component", "device", "--prefix", cls.prefix)

    def compile(self, source, *libraries, registers=64):
        """Compiles and links a program by one line; its path. The largest of its kernels has so
        many registers."""
        program = self.folder / "program"
        said = run(NVCC, "-std=c++17", "-rdc=true", "-arch=sm_90", f"-I{self.prefix}/include",
                   source, f"-L{self.lib}", *libraries, "-o", program, "-Xnvlink=--verbose")
        used = re.findall(r"Function properties for '\w+':\n.*?used (\d+) registers", said)
        self.assertEqual(max(map(int, used), default=0), registers, said)
        return program

    def expect_words_are_counted(self, program):
        env = self.library_environment()
        volume = self.folder / "docs.img"
        run(self.prefix / "bin/gofs", "mkfs", "--size", "64M", volume)
        run(self.prefix / "bin/gofs", "put", "-r", volume, ROOT / "docs", "/")
        files = ["/docs" + name for name in FILES]
        if HAS_GPU:
            said = run(program, volume, *files, env=env)
            for name, path in zip(FILES, files):
                words = len((ROOT / f"docs{name}").read_text().split())
                self.assertRegex(said, rf"{words} {path}")
        else:
            said = run(program, volume, *files, succeeds=False, env=env)
            self.assertRegex(said, r"^word_count: .*(GPU|CUDA|cuda)")

    def test_a_program_links_it_by_hand(self):
        self.expect_words_are_counted(
            self.compile(ROOT / "examples/word_count.cu", "-lgofs_device", "-lgofs"))

    def test_kernels_that_only_attach_link_less(self):
        self.compile(ROOT / "examples/word_count.cu", "-lgofs_client", "-lgofs", registers=48)

    def test_a_project_finds_it_as_a_component(self):
        project = self.project("find_package_device", ("word_count.cu",))
        self.configure(project, f"-DCMAKE_CUDA_COMPILER={NVCC}", "-DCMAKE_CUDA_ARCHITECTURES=90")
        self.expect_words_are_counted(self.build(project) / "word_count")

    # nvlink takes minutes to link all of what is compiled without optimisation.
    @unittest.skipUnless(HAS_GPU, "device code is optimised where there is a GPU")
    def test_it_has_every_call_of_the_headers_for_each_kind_of_group(self):
        kernels = []

        def add_kernel(names, parameters, scopes):
            types = [re.sub(r"\s*\b\w+$", "", parameter)
                     for parameter in " ".join(parameters.split()).split(", ")]
            given = ", ".join(f"any<{type}>(in)" for type in types)
            kernels.append(f"__global__ void kernel_{len(kernels)}(const void* in) {{")
            kernels.extend(f"  {name}({scope}{given});" for name, scope in zip(names, scopes))
            kernels.append("}")

        header = (self.prefix / "include/gofs/gofs_device.h").read_text()
        of_c = re.findall(r"^GOFS_DEVICE_CALL\([a-z ]+, (\w+),\s+([^;]*)\);", header,
                          re.MULTILINE)
        self.assertEqual(len(of_c), header.count("GOFS_DEVICE_CALL(") - 1)
        for name, parameters in of_c:
            add_kernel([f"{name}_{kind}" for kind in ("thread", "warp", "block", "grid")],
                       parameters, [""] * 4)
        header = (self.prefix / "include/gofs/device_library.cuh").read_text()
        of_cpp = re.findall(r"^template <typename Scope>\n__device__ \w+ (\w+)\(Scope scope, "
                            r"([^;]*)\);", header, re.MULTILINE)
        self.assertEqual(len(of_cpp), header.count("template <typename Scope>"))
        for name, parameters in of_cpp:
            scopes = ["ThisThread", "ThisWarp", "ThisBlock", "ThisGrid"]
            if name in ("pread_async", "pwrite_async", "poll", "wait"):
                del scopes[2:]
            add_kernel([f"gofs::device_library::{name}"] * len(scopes), parameters,
                       [f"gofs::{scope}(), " for scope in scopes])
        self.assertGreater(len(kernels), 200)
        source = self.folder / "all.cu"
        source.write_text("\n".join([
            "#include <gofs/gofs.cuh>", "#include <gofs/gofs_device.h>", "#include <type_traits>",
            "using namespace gofs;",
            "template <typename T> __device__ T any(const void* in) {",
            "  return *static_cast<const std::decay_t<T>*>(in);", "}",
            *kernels, "int main() {}", ""]))
        self.compile(source, "-lgofs_device")


if __name__ == "__main__":
    unittest.main(verbosity=2)
