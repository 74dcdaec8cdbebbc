#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""GoFS as it is installed: which files, which symbols, and programs outside of the tree that use it
by find_package, by pkg-config, and as a part of their own tree."""

import pathlib
import re
import shutil
import subprocess
import unittest

from package import BUILD, HERE, HOST_EXAMPLES, ROOT, PackageTest, run

VERSION = ".".join(
    re.search(rf"#define GOFS_VERSION_{part} (\d+)", (ROOT / "include/gofs/version.h").read_text())
    .group(1) for part in ("MAJOR", "MINOR", "PATCH"))
MAJOR, MINOR, _ = VERSION.split(".")
FOR_KERNELS = {"gofs.cuh", "device_library.cuh", "gofs_device.h"}
HAS_DEVICE = (BUILD / "lib/gofs-device.pc").exists()


def symbols(*arguments):
    """The names, demangled, that `nm` lists as defined, without versions and default arguments of
    templates."""
    text = run("nm", "--demangle", "--defined-only", *arguments)
    text = text.replace("std::__cxx11::basic_string<char, std::char_traits<char>, "
                        "std::allocator<char> >", "std::string")
    text = re.sub(r"std::vector<([\w:]+), std::allocator<\1 ?> >", r"std::vector<\1>", text)
    found = re.findall(r"^[0-9a-f]+ [B-Zb-z] (.+?)(?:@@?\S+)?$", text, re.MULTILINE)
    return set(found)


class InstalledFilesTest(PackageTest):
    def test_each_public_header_is_there_and_compiles_by_itself(self):
        expected = {path.name for path in (ROOT / "include/gofs").iterdir()}
        if not HAS_DEVICE:
            expected -= FOR_KERNELS
        folder = self.prefix / "include/gofs"
        self.assertEqual({path.name for path in folder.iterdir()}, expected)
        for name in sorted(expected - FOR_KERNELS):
            source = self.folder / "one.cpp"
            source.write_text(f"#include <gofs/{name}>\n")
            for without in ((), ("-fno-exceptions", "-fno-rtti")):
                run("g++", "-std=c++17", "-Wall", "-Wextra", "-Wpedantic", "-Werror",
                    "-fsyntax-only", *without, "-I", self.prefix / "include", source)

    def test_no_file_says_where_it_was_built_or_installed_first(self):
        places = [str(place).encode() for place in (ROOT, BUILD, self.prefix.parent)]
        for path in self.prefix.rglob("*"):
            if path.is_file():
                content = path.read_bytes()
                for place in places:
                    self.assertNotIn(place, content, path)

    def test_the_shared_library_shows_what_the_list_says_and_no_more(self):
        listed = set((HERE / "symbols.txt").read_text().splitlines())
        shown = {name for name in symbols("--dynamic", self.lib / "libgofs.so")
                 if not name.startswith("gofs_")}
        self.assertEqual(shown - listed, set(), "not in tests/install/symbols.txt")
        self.assertEqual(listed - shown, set(), "missing, but in tests/install/symbols.txt")

    def test_the_static_library_shows_the_same(self):
        # And weak ones of the standard library, which every program may have.
        shown = {name for name in symbols("--extern-only", self.lib / "libgofs.a")
                 if not re.search(r"\bstd::|\b__gnu_cxx::|^DW\.ref\.", name)
                 or name.startswith("gofs::")}
        self.assertEqual(shown, symbols("--dynamic", self.lib / "libgofs.so"))

    def test_the_shared_library_shows_the_functions_of_the_c_header(self):
        header = self.prefix / "include/gofs/gofs.h"
        if not header.exists():
            self.skipTest("there is no gofs/gofs.h yet")
        declared = set(re.findall(r"^GOFS_API[^;(]*?\b(gofs_\w+)\(", header.read_text(),
                                  re.MULTILINE))
        self.assertGreater(len(declared), 10)
        shown = {name for name in symbols("--dynamic", self.lib / "libgofs.so")
                 if name.startswith("gofs_")}
        self.assertEqual(shown, declared)

    def test_all_name_one_version(self):
        self.assertEqual(run(self.prefix / "bin/gofs", "--version"), f"gofs {VERSION}\n")
        dynamic = run("readelf", "--dynamic", self.lib / "libgofs.so")
        self.assertIn(f"soname: [libgofs.so.{MAJOR}]", dynamic)
        self.assertNotRegex(dynamic, "RPATH|RUNPATH")
        self.assertTrue((self.lib / f"libgofs.so.{VERSION}").is_file())
        self.assertIn(f" GOFS_{MAJOR}.{MINOR}", run("nm", "--dynamic", self.lib / "libgofs.so"))
        self.assertIn(f"gofs {VERSION}", (self.prefix / "share/man/man1/gofs.1").read_text())

    def test_gofs_finds_gofs_bench_and_the_manual_names_each_command(self):
        self.assertIn("Usage: gofs bench", run(self.prefix / "bin/gofs", "bench", "--help"))
        manual = (self.prefix / "share/man/man1/gofs.1").read_text()
        listing = run(self.prefix / "bin/gofs", "--help").split("Subcommands:")[1].split("\n\n")[0]
        commands = re.findall(r"^  (\w+) ", listing, re.MULTILINE)
        self.assertGreater(len(commands), 15)
        for command in commands:
            self.assertRegex(manual, rf'[ "]{command}[ "\n]', "docs/gofs.1.in")


class FindPackageTest(PackageTest):
    def test_examples_build_and_run(self):
        project = self.project("find_package")
        self.configure(project, "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON")
        self.expect_examples_work(self.build(project), ("host_read", "host_read_static"))
        commands = (project / "build/compile_commands.json").read_text()
        self.assertNotRegex(commands, "-W|-fsanitize|c\\+\\+20|-O2")

    def test_a_project_in_c_alone_links_either_library(self):
        project = self.folder / "in_c"
        project.mkdir()
        (project / "program.c").write_text(
            '#include <gofs/gofs.h>\n#include <stdio.h>\n'
            'int main(void) { puts(gofs_version()); return gofs_mount("/none", NULL, NULL) == 0; }')
        (project / "CMakeLists.txt").write_text("""cmake_minimum_required(VERSION 3.23)
project(in_c LANGUAGES C)
find_package(gofs REQUIRED COMPONENTS host host_static)
foreach(library IN ITEMS host host_static)
  add_executable(with_${library} program.c)
  target_link_libraries(with_${library} PRIVATE gofs::${library})
endforeach()
""")
        self.configure(project)
        folder = self.build(project)
        for program in ("with_host", "with_host_static"):
            self.assertEqual(run(folder / program), f"{VERSION}\n")

    def answer(self, call, succeeds=False):
        """What CMake says of a project with this call alone, in one line."""
        folder = self.folder / "asks"
        folder.mkdir(exist_ok=True)
        (folder / "CMakeLists.txt").write_text(
            f"cmake_minimum_required(VERSION 3.23)\nproject(asks LANGUAGES CXX)\n{call}\n")
        return " ".join(self.configure(folder, succeeds=succeeds).split())

    @unittest.skipIf(HAS_DEVICE, "this build has device code")
    def test_a_package_without_device_code_says_so_in_one_sentence(self):
        said = self.answer("find_package(gofs REQUIRED COMPONENTS host device)")
        self.assertIn("this GoFS was built without CUDA and has no component 'device': build it "
                      "with -DGOFS_CUDA=ON", said)
        self.answer("find_package(gofs REQUIRED COMPONENTS host OPTIONAL_COMPONENTS device)\n"
                    "if(TARGET gofs::device OR NOT TARGET gofs::host)\n"
                    "  message(FATAL_ERROR wrong)\nendif()", succeeds=True)

    def test_components_that_do_not_exist_are_refused_by_name(self):
        said = self.answer("find_package(gofs REQUIRED COMPONENTS kernels)")
        self.assertIn("GoFS has no component 'kernels'", said)

    def test_versions_with_the_same_minor_number_do(self):
        self.answer(f"find_package(gofs {VERSION} REQUIRED)\nfind_package(gofs REQUIRED)",
                    succeeds=True)
        for version in (f"{MAJOR}.{int(MINOR) + 1}", f"{int(MAJOR) + 1}.0", f"{MAJOR}.{MINOR}.99"):
            self.assertIn(f'requested version "{version}"',
                          self.answer(f"find_package(gofs {version} REQUIRED)"))

    def test_what_only_the_static_library_needs_may_be_missing_for_the_shared_one(self):
        said = (self.lib / "pkgconfig/gofs.pc").read_text()
        outside = [name for name in ("uring", "blkid") if f"-l{name} " in said]
        if not outside:
            self.skipTest("this build has neither liburing nor libblkid")
        lacking = "set(CMAKE_FIND_LIBRARY_SUFFIXES .none)\nfind_package"
        self.answer(f"{lacking}(gofs REQUIRED COMPONENTS host)", succeeds=True)
        said = self.answer(f"{lacking}(gofs REQUIRED COMPONENTS host_static)")
        self.assertIn("what the component 'host_static' links is missing: lib" + outside[0], said)

    def test_neither_library_needs_fmt(self):
        for name in ("libgofs.so", "libgofs.a"):
            self.assertNotIn("N3fmt", run("nm", "--undefined-only", self.lib / name), name)
        self.assertNotIn("libfmt", run("readelf", "--dynamic", self.lib / "libgofs.so"))
        for path in self.lib.glob("**/*.cmake"):
            self.assertNotIn("fmt", path.read_text(), path)


class PkgConfigTest(PackageTest):
    def flags(self, *options):
        folder = self.lib / "pkgconfig"
        return run("pkg-config", *options, "gofs", env={
            "PATH": "/usr/bin:/bin", "PKG_CONFIG_PATH": str(folder)}).split()

    def test_the_version_is_that_of_the_header(self):
        self.assertEqual(self.flags("--modversion"), [VERSION])

    def test_examples_build_by_one_line_each_and_run(self):
        for example in HOST_EXAMPLES:
            run("g++", "-std=c++17", ROOT / "examples" / example, "-o",
                self.folder / pathlib.Path(example).stem, *self.flags("--cflags", "--libs"))
        self.expect_examples_work(self.folder, env=self.library_environment())

    def test_a_program_may_link_the_static_library(self):
        libraries = ["-l:libgofs.a" if flag == "-lgofs" else flag
                     for flag in self.flags("--static", "--libs")]
        for example in HOST_EXAMPLES:
            run("g++", "-std=c++17", *self.flags("--cflags"), ROOT / "examples" / example, "-o",
                self.folder / pathlib.Path(example).stem, *libraries)
        self.expect_examples_work(self.folder)

    def test_a_program_in_c_links_either_library(self):
        if not (self.prefix / "include/gofs/gofs.h").exists():
            self.skipTest("there is no gofs/gofs.h yet")
        source = self.folder / "program.c"
        source.write_text("""#include <gofs/gofs.h>
#include <stdio.h>
int main(void) {
  gofs_volume* volume = NULL;
  const int result = gofs_mount("/none", NULL, &volume);
  printf("%s %d %s\\n", gofs_version(), result, gofs_last_error());
  return 0;
}
""")
        static = ["-l:libgofs.a" if flag == "-lgofs" else flag
                  for flag in self.flags("--static", "--libs")]
        for libraries in (self.flags("--libs"), static):
            run("gcc", "-std=c99", "-Wall", "-Wextra", "-Werror", *self.flags("--cflags"), source,
                "-o", self.folder / "program", *libraries)
            said = run(self.folder / "program", env=self.library_environment())
            self.assertEqual(said, f"{VERSION} -2 /none: No such file or directory\n")


class PartOfAnotherTreeTest(PackageTest):
    """The libraries are compiled anew here, as fast as that goes: without optimisation, with many
    files at once, and by clang where there is one."""

    FAST = ("-DCMAKE_CXX_FLAGS=-O0", "-DCMAKE_UNITY_BUILD=ON", "-DCMAKE_UNITY_BUILD_BATCH_SIZE=30",
            *(["-DCMAKE_CXX_COMPILER=clang++-16"] if shutil.which("clang++-16") else []))
    # What only commands and tests need is not even looked for.
    LACKING = tuple(f"-DCMAKE_DISABLE_FIND_PACKAGE_{name}=ON"
                    for name in ("CLI11", "nlohmann_json", "GTest", "Boost"))

    def test_examples_build_and_run_by_fetch_content(self):
        project = self.project("fetch_content")
        self.configure(project, f"-DGOFS_TREE={ROOT}", *self.FAST, *self.LACKING)
        self.expect_examples_work(self.build(project, "make_volume", "host_read"))
        own = [line for line in (project / "build/compile_commands.json").read_text().splitlines()
               if '"command"' in line and "/src/" not in line]
        self.assertNotEqual(own, [])
        for line in own:
            self.assertNotRegex(line, r"-W|c\+\+20|/src\b|-g1")

    def test_a_project_that_includes_it_keeps_its_settings_and_builds_the_libraries_alone(self):
        project = self.project("fetch_content")
        said = self.configure(project, f"-DGOFS_TREE={ROOT}", "-DBY_SUBDIRECTORY=ON",
                              "-DBUILD_SHARED_LIBS=ON", *self.LACKING)
        for left in re.findall(r"left: (.*)", said):
            expected = {"CMAKE_CXX_FLAGS_RELEASE": "-O3 -DNDEBUG"}.get(left.split("=")[0], "")
            self.assertEqual(left.split("=", 1)[1], expected, left)
        self.assertEqual(len(re.findall("left:", said)), 6)
        self.assertEqual(list(project.rglob("CTestTestfile.cmake")), [])
        plan = subprocess.run(["cmake", "--build", project / "build", "--", "-n"],
                              stdout=subprocess.PIPE, timeout=60, check=True).stdout.decode()
        self.assertIn("libgofs.so", plan)
        self.assertNotRegex(plan, "libgofs[.]a|-Werror|gofs-bench|_test")


if __name__ == "__main__":
    unittest.main(verbosity=2)
