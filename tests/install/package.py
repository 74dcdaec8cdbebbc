# SPDX-License-Identifier: Apache-2.0
"""What the tests of installing share: GoFS in a folder of its own, and programs that are built
against it outside of the tree."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ["GOFS_BUILD_DIR"]).resolve()
HERE = pathlib.Path(__file__).resolve().parent
HOST_EXAMPLES = ("make_volume.cpp", "host_read.cpp")
JOBS = os.environ.get("GOFS_JOBS", "2")


def run(*command, succeeds=True, **options):
    """What a command says, both ways; it has to succeed, unless it is to fail."""
    answer = subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=600,
                            check=False, **options)
    text = answer.stdout.decode(errors="replace")
    if (answer.returncode == 0) != succeeds:
        raise AssertionError(f"{' '.join(map(str, command))}: exit status {answer.returncode}\n"
                             f"{text}")
    return text


def install(folder):
    """Installs the build into `folder`/usr/local, as a package's builder does, and moves that to
    `folder`/moved: what is installed may not know where it is. Returns the latter."""
    run("cmake", "--install", BUILD, "--prefix", "/usr/local",
        env={**os.environ, "DESTDIR": str(folder / "staged")})
    prefix = folder / "moved"
    shutil.move(folder / "staged" / "usr" / "local", prefix)
    return prefix


class PackageTest(unittest.TestCase):
    """Cases have `prefix`, where GoFS is installed, and `folder`, which is theirs alone."""

    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory(prefix="gofs_install_")
        cls.addClassCleanup(cls.scratch.cleanup)
        cls.prefix = install(pathlib.Path(cls.scratch.name))
        cls.lib = next(cls.prefix.glob("**/libgofs.so")).parent

    def setUp(self):
        holder = tempfile.TemporaryDirectory(prefix="case_", dir=self.scratch.name)
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)

    def library_environment(self):
        """In which programs find what is installed, and other libraries where they did before."""
        folders = [str(self.lib), *filter(None, [os.environ.get("LD_LIBRARY_PATH")])]
        return {**os.environ, "LD_LIBRARY_PATH": os.pathsep.join(folders)}

    def project(self, name, examples=HOST_EXAMPLES):
        """A copy of the project tests/install/NAME with examples beside its CMakeLists.txt."""
        folder = self.folder / name
        shutil.copytree(HERE / name, folder)
        for example in examples:
            shutil.copy(ROOT / "examples" / example, folder)
        return folder

    def configure(self, project, *settings, **options):
        """Configures a project against what is installed; what CMake says."""
        return run("cmake", "-S", project, "-B", project / "build", "-G",
                   "Ninja" if shutil.which("ninja") else "Unix Makefiles",
                   f"-DCMAKE_PREFIX_PATH={self.prefix}", *settings, **options)

    def build(self, project, *targets):
        run("cmake", "--build", project / "build", "-j", JOBS,
            *(["--target", *targets] if targets else []))
        return project / "build"

    def expect_examples_work(self, folder, readers=("host_read",), env=None):
        """make_volume puts docs/ into a volume, and each reader gets from it what it held."""
        volume = self.folder / "docs.img"
        run(folder / "make_volume", volume, ROOT / "docs", env=env)
        for reader in readers:
            listing = run(folder / reader, volume, "/", env=env)
            self.assertIn("architecture.md", listing)
            answer = subprocess.run([folder / reader, volume, "/architecture.md"], env=env,
                                    stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=60,
                                    check=True)
            self.assertEqual(answer.stdout, (ROOT / "docs/architecture.md").read_bytes())
        run(folder / readers[0], volume, "/none", succeeds=False, env=env)
