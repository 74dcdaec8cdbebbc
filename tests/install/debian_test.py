#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The Debian package: what it says of itself, and, for root, that it installs, that programs build
against it as they do against any other, and that nothing of it is left when it is purged."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

from package import BUILD, HOST_EXAMPLES, ROOT, PackageTest, run


def make_package(folder):
    run("cpack", "--config", BUILD / "CPackConfig.cmake", "-G", "DEB", "-B", folder, cwd=folder)
    (package,) = folder.glob("*.deb")
    return package


def is_installed(name):
    answer = subprocess.run(["dpkg-query", "-W", "-f", "${db:Status-Status}", name],
                            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    return answer.stdout not in (b"", b"not-installed")


@unittest.skipUnless(shutil.which("dpkg-shlibdeps"), "no Debian")
class DebianTest(PackageTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        folder = pathlib.Path(tempfile.mkdtemp(dir=cls.scratch.name))
        cls.package = make_package(folder)
        cls.name = cls.field("Package")

    @classmethod
    def field(cls, name):
        return run("dpkg-deb", "--field", cls.package, name).strip()

    def test_it_says_what_it_is_and_what_it_needs(self):
        version = run(BUILD / "src/cli/gofs", "--version").split()[1]
        self.assertEqual(self.field("Version"), version)
        self.assertEqual(self.package.name,
                         f"{self.name}_{version}_{self.field('Architecture')}.deb")
        self.assertEqual(self.field("Maintainer"), "The GoFS project")
        self.assertEqual(self.field("Section"), "utils")
        for library in ("libc6", "libfmt", "libstdc++6"):
            self.assertRegex(self.field("Depends"), rf"(^|, ){library.replace('+', '[+]')}")
        control = self.folder / "control"
        run("dpkg-deb", "--control", self.package, control)
        major, minor, _ = version.split(".")
        self.assertEqual((control / "shlibs").read_text(),
                         f"libgofs {major} {self.name} (>= {major}.{minor}), "
                         f"{self.name} (<< {major}.{int(minor) + 1}~)\n")
        self.assertIn("ldconfig", (control / "triggers").read_text())

    def test_all_its_files_are_roots_and_none_is_writable_by_others(self):
        for line in run("dpkg-deb", "--contents", self.package).splitlines():
            mode, owner = line.split()[:2]
            self.assertEqual(owner, "root/root", line)
            self.assertTrue(mode[0] == "l" or mode[8] == "-", line)
            self.assertRegex(line.split()[5], r"^\./(usr/.*)?$")

    @unittest.skipUnless(os.geteuid() == 0, "only root installs packages")
    def test_programs_build_against_it_and_purging_leaves_nothing(self):
        if is_installed("gofs") or is_installed("gofs-cuda"):
            self.skipTest("GoFS is installed here already")
        self.addCleanup(run, "dpkg", "--purge", self.name)
        run("dpkg", "-i", self.package)
        files = [pathlib.Path(line) for line in run("dpkg", "-L", self.name).splitlines()]
        files = [path for path in files if not path.is_dir() or "gofs" in path.name]
        self.assertGreater(len(files), 20)

        self.assertRegex(run("/usr/bin/gofs", "--version"), r"^gofs \d")
        flags = run("pkg-config", "--cflags", "--libs", "gofs",
                    env={"PATH": "/usr/bin:/bin"}).split()
        for example in HOST_EXAMPLES:
            run("g++", "-std=c++17", ROOT / "examples" / example, "-o",
                self.folder / pathlib.Path(example).stem, *flags)
        self.expect_examples_work(self.folder)
        project = self.project("find_package")
        run("cmake", "-S", project, "-B", project / "build")
        self.expect_examples_work(self.build(project), ("host_read",))

        run("dpkg", "--purge", self.name)
        self.assertFalse(is_installed(self.name))
        self.assertEqual([path for path in files if os.path.lexists(path)], [])
        self.assertNotIn("libgofs", run("/sbin/ldconfig", "--print-cache"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
