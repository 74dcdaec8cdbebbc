#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The rules of STYLE.md and of the folder layers that a program can check.

Run without arguments from anywhere: every check prints what it found, one line a finding with file
and line, and the last line is `N passed, N failed`, one per check (for the compiles-alone check one
per header and language level). `check_structure.py CHECK...` runs only those named; --list names
them.
"""

import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent

# Lowest first; a folder may include itself and those before it.
LAYERS = ["simt", "format", "ssd", "nvme", "f2fs", "vfs", "request", "serve", "device", "kernels",
          "gpu", "host", "cli", "bench", "daemon"]
# The public header that every folder may include; the others stand above all but the command.
LOWEST_HEADER = pathlib.PurePosixPath("include/gofs/types.h")
# What public headers may include in <> beside the headers of C++, which have no suffix.
OUTSIDE_HEADERS = {"cuda_runtime.h", "stddef.h", "stdint.h"}

# Public headers that programs in C include.
C_HEADERS = {pathlib.PurePosixPath("include/gofs") / name for name in ("gofs.h", "version.h")}
# A header that only nvcc compiles, though its name, which other languages know, ends in .h.
NVCC_HEADER = pathlib.PurePosixPath("include/gofs/gofs_device.h")

CODE = {".h", ".hpp", ".cuh", ".cu", ".cpp", ".c"}
SCRIPTS = {".py", ".sh", ".cmake"}
SCRIPT_NAMES = {"CMakeLists.txt", "Makefile", "run", ".clang-format", ".clang-tidy"}
LINE_LENGTH_MAX = 100

INCLUDE = re.compile(r'^\s*#\s*include\s+([<"])([^>"]+)[>"]')
MARKDOWN_LINK = re.compile(r"\]\(([^)\s]+)(?:\s+\"[^\"]*\")?\)")
HEADING = re.compile(r"^#{1,6}\s+(.*?)\s*#*\s*$")


def tracked_files():
    """What git would take: tracked files and new ones that are not ignored."""
    listing = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=ROOT, stdout=subprocess.PIPE,
        check=True).stdout.decode()
    paths = [pathlib.PurePosixPath(name) for name in listing.split("\0") if name]
    return sorted(path for path in set(paths) if (ROOT / path).is_file())


class Tree:
    """The files of the repository and their lines."""

    def __init__(self):
        self.files = tracked_files()
        self.texts = {}
        self.found_includes = {}
        self.resolved = {}

    def lines(self, path):
        if path not in self.texts:
            text = (ROOT / path).read_text(encoding="utf-8", errors="replace")
            self.texts[path] = text.splitlines()
        return self.texts[path]

    def code(self):
        return [path for path in self.files if path.suffix in CODE]

    def code_and_scripts(self):
        return [path for path in self.files
                if path.suffix in CODE | SCRIPTS or path.name in SCRIPT_NAMES]

    def includes(self, path):
        """(line number, quoted, name) of each include."""
        if path not in self.found_includes:
            matches = ((number, INCLUDE.match(line))
                       for number, line in enumerate(self.lines(path), 1))
            self.found_includes[path] = [(number, match.group(1) == '"', match.group(2))
                                         for number, match in matches if match]
        return self.found_includes[path]


def layer_of(path):
    """The index of the layer that a file belongs to, or None: include/, tests/, examples/."""
    if len(path.parts) > 2 and path.parts[0] == "src" and path.parts[1] in LAYERS:
        return LAYERS.index(path.parts[1])
    return None


def is_test_code(path):
    """Tests, benchmarks and fuzzers may reach up and into src/testing; nothing may include them."""
    return (bool(re.search(r"_(test|bench|fuzz)(_[a-z0-9]+)?$", path.stem))
            or path.parts[:2] == ("src", "testing") or path.parts[0] in ("tests", "examples"))


def is_public(path):
    """Headers that programs include, which find nothing of ours but each other."""
    return path.parts[0] == "include"


def resolve(tree, includer, name):
    """The repository file that a quoted include means, or None."""
    key = (includer.parent, name)
    if key not in tree.resolved:
        tree.resolved[key] = find_included(tree, includer, name)
    return tree.resolved[key]


def find_included(tree, includer, name):
    for base in (includer.parent, pathlib.PurePosixPath("src"), pathlib.PurePosixPath("include")):
        candidate = pathlib.PurePosixPath(os.path.normpath(base / name))
        if candidate in tree.file_set:
            return candidate
    return None


# --- Checks: each yields findings, strings "file:line: what". ------------------------------------

def check_layers(tree):
    """A folder of src/ includes only itself and the folders below it."""
    for path in tree.code():
        if path.parts[0] == "src" and layer_of(path) is None and path.parts[1] != "testing":
            yield f"{path}:1: src/{path.parts[1]} is no layer (scripts/check_structure.py)"
        for number, quoted, name in tree.includes(path):
            target = resolve(tree, path, name)
            if target is None:
                if quoted:
                    yield f"{path}:{number}: no such file under src/ or include/: {name}"
                continue
            if path.parts[0] == "python" and target.parts[0] == "src":
                yield f"{path}:{number}: the Python package includes what is not public: {name}"
            if not quoted:
                yield f"{path}:{number}: our own header in <>: {name}"
            if is_test_code(path):
                continue
            if is_test_code(target):
                yield f"{path}:{number}: includes test code: {name}"
            own, other = layer_of(path), layer_of(target)
            if target == LOWEST_HEADER:
                continue
            if target.parts[0] == "include":
                # The public headers sit on top of all but what implements them and the command.
                users = ("device", "host", "cli", "bench", "daemon")
                if own is not None and LAYERS[own] not in users:
                    yield f"{path}:{number}: upward include of a public header: {name}"
            elif own is not None and other is not None and other > own:
                yield f"{path}:{number}: upward include: {LAYERS[own]} -> {LAYERS[other]}: {name}"
            elif path.parts[0] == "include" and other is not None and LAYERS[other] in (
                    "cli", "bench", "daemon"):
                yield f"{path}:{number}: upward include: public header -> {LAYERS[other]}: {name}"


def check_cycles(tree):
    """No header includes itself over others."""
    graph = {}
    for path in tree.code():
        graph[path] = [resolve(tree, path, name) for _, _, name in tree.includes(path)]
        # x.inl.h is the second half of the header that includes it, and may name that header.
        if path.name.endswith(".inl.h"):
            graph[path] = []
        graph[path] = [target for target in graph[path] if target is not None]
    finished = set()
    for root in graph:
        # Depth first without recursion; `stack` holds the path from `root` and what is left to see.
        stack = [(root, iter(graph[root]))]
        on_stack = [root]
        while stack:
            node, rest = stack[-1]
            step = next(rest, None)
            if step is None:
                finished.add(node)
                stack.pop()
                on_stack.pop()
            elif step in on_stack:
                cycle = on_stack[on_stack.index(step):] + [step]
                yield f"{node}:1: include cycle: " + " -> ".join(str(entry) for entry in cycle)
            elif step not in finished and step in graph:
                stack.append((step, iter(graph[step])))
                on_stack.append(step)


def check_extensions(tree):
    """.h compiles everywhere but in the folders of the host; .hpp, .cpp: host; .cuh, .cu: nvcc; C
    includes what is for C, and is a test or an example."""
    # What an extension may not include, because it would lose what it promises.
    forbidden = {".h": (".hpp", ".cuh", ".cu"), ".hpp": (".cuh", ".cu"), ".cpp": (".cuh", ".cu"),
                 ".c": (".hpp", ".cuh", ".cu")}
    host_folders = (("src", "host"), ("src", "cli"))
    for path in tree.code():
        suffix = path.suffix
        if suffix == ".h" and path.parts[:2] in host_folders:
            suffix = ".hpp"
        for number, quoted, name in tree.includes(path):
            if quoted and name.endswith(forbidden.get(suffix, ())):
                yield f"{path}:{number}: {path.suffix} includes {name}"
        if path.suffix == ".c" and not is_test_code(path):
            yield f"{path}:1: .c that is neither a test nor an example"
        ours = "bench" in path.parts[:2] or path.parts[1:2] in (("gpu",), ("device",))
        if path.suffix == ".cu" and not is_test_code(path) and not ours:
            yield f"{path}:1: .cu outside src/gpu, src/device, src/bench and bench"
        if path.suffix in (".h", ".hpp", ".cuh"):
            head = "\n".join(tree.lines(path)[:60])
            if "#pragma once" not in head:
                yield f"{path}:1: no #pragma once"


def check_public(tree):
    """Public headers include each other and the standard library, and name nothing internal."""
    words = re.compile(rf"\b({'|'.join(LAYERS)}|detail|image|testing)\s*::")
    for path in filter(is_public, tree.code()):
        for number, quoted, name in tree.includes(path):
            if quoted and (path == LOWEST_HEADER or not name.startswith("gofs/")):
                yield f"{path}:{number}: a public header includes {name}"
            elif not quoted and re.search(r"[./]", name) and name not in OUTSIDE_HEADERS:
                yield f"{path}:{number}: a public header includes <{name}>"
        # What is private may have a type of ours that is only declared.
        private = False
        for number, line in enumerate(tree.lines(path), 1):
            if re.match(r" *(public|protected|private):|};", line):
                private = line.strip() == "private:"
            match = words.search(line.split("//")[0])
            if match and not private:
                yield f"{path}:{number}: a public header names {match.group(0)}"


def check_cuda_arch(tree):
    """Code knows the side it is compiled for only in src/simt, and where GOFS_HD is defined."""
    # The compilers' macros, CCCL's, and ours.
    words = re.compile(r"__CUDA_ARCH_\w*|__CUDACC_\w*|__CUDA__|__NVCC__"
                       r"|\bNV_(IF|DISPATCH|IS|PROVIDES)_\w+|\bGOFS_ON_GPU\b")
    for path in tree.code():
        if path.parts[:2] == ("src", "simt") or path == LOWEST_HEADER:
            continue
        for number, line in enumerate(tree.lines(path), 1):
            match = words.search(line.split("//")[0])
            if match:
                yield f"{path}:{number}: {match.group(0)} outside src/simt"


def check_doors(tree):
    """Of f2fs/ and vfs/, commands for file data are file_data.h's, for metadata pages.h's."""
    for path in tree.code():
        if (path.parts[:2] not in (("src", "f2fs"), ("src", "vfs")) or is_test_code(path)
                or path.name in ("file_data.h", "pages.h")):
            continue
        for number, line in enumerate(tree.lines(path), 1):
            match = re.search(r"nvme::(execute|start)\w*\(", line.split("//")[0])
            if match:
                yield f"{path}:{number}: {match.group(0)}) beside read_data() and write_data()"


def check_callers(tree):
    """In f2fs/ and vfs/, a call goes on with the warp that it was given, and so with its caller."""
    # A new warp would work for the mount (vfs/caller.h).
    words = re.compile(r"\bsimt::(Partial)?Warp\b|\bfs\.credentials\b")
    for path in tree.code():
        if (path.parts[:2] not in (("src", "f2fs"), ("src", "vfs")) or is_test_code(path)
                or path.name in ("caller.h", "layout.h")):
            continue
        for number, line in enumerate(tree.lines(path), 1):
            match = words.search(line.split("//")[0])
            if match:
                yield f"{path}:{number}: {match.group(0)}, and the caller is lost"


def check_spdx(tree):
    """The licence is the first line (the second after #!)."""
    for path in tree.code_and_scripts():
        lines = tree.lines(path)
        first = 1 if lines and lines[0].startswith("#!") else 0
        mark = "//" if path.suffix in CODE else "#"
        if len(lines) <= first or lines[first] != f"{mark} SPDX-License-Identifier: Apache-2.0":
            yield f"{path}:{first + 1}: no SPDX line"


def check_lines(tree):
    """Line length, tabs, blanks at the end, a newline at the end of the file."""
    for path in tree.code_and_scripts():
        for number, line in enumerate(tree.lines(path), 1):
            if len(line) > LINE_LENGTH_MAX:
                yield f"{path}:{number}: {len(line)} columns, {LINE_LENGTH_MAX} allowed"
            if line != line.rstrip():
                yield f"{path}:{number}: blanks at the end of the line"
            if "\t" in line and path.name != "Makefile":
                yield f"{path}:{number}: tab"
        raw = (ROOT / path).read_bytes()
        if raw and not raw.endswith(b"\n"):
            yield f"{path}:{len(tree.lines(path))}: no newline at the end"


def check_todo(tree):
    """TODO names an issue, TODO(#42); stronger words for the same cannot land at all."""
    for path in tree.code_and_scripts():
        if path == pathlib.PurePosixPath("scripts/check_structure.py"):
            continue
        for number, line in enumerate(tree.lines(path), 1):
            if re.search(r"\bTODO\b(?!\(#\d+\))", line):
                yield f"{path}:{number}: TODO without an issue number"
            if re.search(r"\b(FIXME|XXX)\b", line):
                yield f"{path}:{number}: {re.search('FIXME|XXX', line).group(0)} cannot land"


def check_registered(tree):
    """A test, benchmark or fuzzer that no CMakeLists.txt names is never run."""
    for path in tree.code():
        if not re.search(r"_(test|bench|fuzz)$", path.stem) or path.suffix not in (".cpp", ".cu"):
            continue
        folder = path.parent
        while True:
            lists = folder / "CMakeLists.txt"
            if lists in tree.file_set and any(
                    re.search(rf"\b{re.escape(path.name)}\b", line.split("#")[0])
                    for line in tree.lines(lists)):
                break
            if folder == pathlib.PurePosixPath("."):
                yield f"{path}:1: no CMakeLists.txt registers it"
                break
            folder = folder.parent


def check_version(tree):
    """The changelog begins with `Unreleased`, or with the release that gofs/version.h names."""
    header = "\n".join(tree.lines(pathlib.PurePosixPath("include/gofs/version.h")))
    version = [int(re.search(rf"#define GOFS_VERSION_{part} (\d+)$", header, re.M).group(1))
               for part in ("MAJOR", "MINOR", "PATCH")]
    changelog = pathlib.PurePosixPath("CHANGELOG.md")
    headings = [(number, line) for number, line in enumerate(tree.lines(changelog), 1)
                if line.startswith("## ")]
    unreleased = bool(headings) and headings[0][1] == "## Unreleased"
    if len(headings) == unreleased:
        return
    number, line = headings[unreleased]
    match = re.fullmatch(r"## (\d+)\.(\d+)\.(\d+), \d{4}-\d{2}-\d{2}", line)
    if not match:
        yield f"{changelog}:{number}: neither Unreleased nor VERSION, YEAR-MONTH-DAY"
        return
    released = [int(part) for part in match.groups()]
    if released > version or (released != version and not unreleased):
        yield f"{changelog}:{number}: not the version of include/gofs/version.h"


def anchors(tree, path):
    """The anchors that a Markdown page's headings make, in GitHub's way."""
    found = {}
    fenced = False
    for line in tree.lines(path):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        match = None if fenced else HEADING.match(line)
        if match:
            text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", match.group(1)).lower()
            text = re.sub(r"[^\w\- ]", "", text).replace(" ", "-")
            count = found.get(text, 0)
            found[text] = count + 1
            if count:
                found[f"{text}-{count}"] = 1
    return set(found)


def check_links(tree):
    """Each link from a document to a file or heading of the repository leads somewhere."""
    for path in tree.files:
        if path.suffix != ".md":
            continue
        fenced = False
        for number, line in enumerate(tree.lines(path), 1):
            if line.lstrip().startswith("```"):
                fenced = not fenced
            if fenced:
                continue
            for link in MARKDOWN_LINK.findall(re.sub(r"`[^`]*`", "", line)):
                if re.match(r"[a-z]+:", link):
                    continue
                name, _, anchor = link.partition("#")
                target = path if not name else pathlib.PurePosixPath(
                    os.path.normpath(path.parent / name))
                if not (ROOT / target).exists() or ".." in target.parts:
                    yield f"{path}:{number}: dead link: {link}"
                elif anchor and target.suffix == ".md" and anchor not in anchors(tree, target):
                    yield f"{path}:{number}: no such heading: {link}"


def check_format(tree):
    """Sources are as clang-format 16 leaves them (versions disagree, so it is that one)."""
    formatter = shutil.which("clang-format-16")
    if formatter is None:
        raise LookupError("no clang-format-16 here")
    names = [str(path) for path in tree.code()]
    if not names:
        return
    answer = subprocess.run([formatter, "--dry-run", "-ferror-limit=1", *names], cwd=ROOT,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    seen = set()
    for line in answer.stdout.decode(errors="replace").splitlines():
        match = re.match(r"(\S+?):(\d+):\d+: (?:warning|error): code should be", line)
        if match and match.group(1) not in seen:
            seen.add(match.group(1))
            yield f"{match.group(1)}:{match.group(2)}: not formatted (make format)"


# --- Headers compile alone: one case each, public ones one for each language level. ---------------

def cccl_include():
    """The CCCL headers beside the nvcc that the build uses."""
    nvcc = subprocess.run([ROOT / "scripts/nvcc.sh"], stdout=subprocess.PIPE, check=False)
    roots = []
    if nvcc.returncode == 0:
        roots.append(pathlib.Path(nvcc.stdout.decode().strip()).resolve().parent.parent)
    roots += [pathlib.Path("/usr/local/cuda"), ROOT / "build/toolchain/nvidia/cu13"]
    for root in roots:
        for folder in ("include/cccl", "targets/x86_64-linux/include/cccl"):
            if (root / folder / "cuda/atomic").exists():
                return root / folder
    raise LookupError("the CCCL headers are missing: run scripts/setup.sh")


def all_includes(tree, header):
    """Each include of a header, and of those of ours that it brings: (path, quoted, name)."""
    seen = {header}
    queue = [header]
    while queue:
        path = queue.pop()
        for _, quoted, name in tree.includes(path):
            yield path, quoted, name
            target = resolve(tree, path, name)
            if target is not None and target not in seen:
                seen.add(target)
                queue.append(target)


# Most of the time it takes to compile one of our headers goes into this one.
SLOW_HEADER = "cuda/atomic"


def includes_slow_header(tree, header):
    """Whether a header includes SLOW_HEADER, directly or over others of ours."""
    return any(not quoted and name == SLOW_HEADER
               for _, quoted, name in all_includes(tree, header))


def chains_of(tree, headers):
    """The headers in as few lists as can be, in each of which every header includes those before
    it. So one source can include a whole list, and each header in it finds nothing that it would
    not find alone. (Dilworth; the matching is Kuhn's.)"""
    wanted = set(headers)
    includes = {header: {resolve(tree, path, name) for path, _, name in all_includes(tree, header)}
                & wanted - {header} for header in headers}
    includer_of = {}

    def find_one_before(header, seen):
        for other in includes[header] - seen:
            seen.add(other)
            if other not in includer_of or find_one_before(includer_of[other], seen):
                includer_of[other] = header
                return True
        return False

    for header in headers:
        find_one_before(header, set())
    chains = []
    for header in set(headers) - set(includer_of.values()):
        chain = [header]
        while chain[-1] in includer_of:
            chain.append(includer_of[chain[-1]])
        chains.append(chain)
    return chains


# Public headers compile at the levels of the programs that include them, and at our own.
INTERNAL_LEVEL = "C++20"
PUBLIC_LEVEL = "C++17"
C_LEVEL = "C99"


class LoneHeaderCompiler:
    """Compiles sources that hold nothing but includes, in a folder of its own."""

    def __init__(self, tree, folder):
        self.tree = tree
        self.folder = pathlib.Path(folder)
        warnings = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Werror"]
        self.commands = {
            INTERNAL_LEVEL: ["g++", "-std=c++20", *warnings, "-I", ROOT / "src", "-I",
                             ROOT / "include", "-isystem", cccl_include()],
            # As programs compile them, where nothing else of ours is found.
            PUBLIC_LEVEL: ["g++", "-std=c++17", *warnings, "-I", ROOT / "include"],
            C_LEVEL: ["gcc", "-std=c99", *warnings, "-I", ROOT / "include"],
        }
        self.precompiled = self.folder / "slow.hpp"
        self.precompiled.write_text(f"#include <{SLOW_HEADER}>\n")
        self.run(INTERNAL_LEVEL,
                 ["-x", "c++-header", self.precompiled, "-o", f"{self.precompiled}.gch"])

    def run(self, level, arguments):
        return subprocess.run(self.commands[level] + arguments, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=120, check=False)

    def compile(self, chain, level):
        suffix = "c" if level == C_LEVEL else "cpp"
        source = self.folder / f"{str(chain[-1]).replace('/', '__')}.{level}.{suffix}"
        names = [pathlib.PurePosixPath(*header.parts[1:]) for header in chain]
        # Twice: the second time must be nothing. C wants a file to have something.
        text = "".join(f'#include "{name}"\n' for name in 2 * names)
        source.write_text(text + "typedef int something;\n")
        # Only to those that see it anyway: others may miss something that it brings.
        first = level == INTERNAL_LEVEL and includes_slow_header(self.tree, chain[0])
        before = ["-include", self.precompiled] if first else []
        return self.run(level, ["-fsyntax-only", *before, source])

    def complaint(self, header, level):
        """The first error of a header, or None."""
        answer = self.compile([header], level)
        if answer.returncode == 0:
            return None
        errors = [line for line in answer.stdout.decode(errors="replace").splitlines()
                  if "error:" in line]
        return errors[0].replace(str(ROOT) + "/", "") if errors else "the compiler failed"

    def complaints(self, chain, level):
        """(header, complaint or None) of each header."""
        if self.compile(chain, level).returncode == 0:
            return [(header, None) for header in chain]
        return [(header, self.complaint(header, level)) for header in chain]


# Keys of headers that have compiled alone here, so that people at work wait for those that may not
# any more. A fresh clone has none.
PASSED_HEADERS = ROOT / "build" / "headers_compiled_alone.json"


def lone_header_key(tree, header, level):
    """Changes with what decides whether a header compiles alone: its text, and which headers bring
    which others to it. What those say in between is for all that includes them to find."""
    digest = hashlib.sha256((ROOT / header).read_bytes())
    for path, quoted, name in all_includes(tree, header):
        digest.update(f"{path} {quoted} {name}\n".encode())
    return digest.hexdigest() + (level if level != INTERNAL_LEVEL else "")


def check_headers(tree):
    """Every .h and .hpp but those of tests compiles alone with g++; those of include/ also as
    C++17, those for C as C99."""
    headers = [path for path in tree.code()
               if path.suffix in (".h", ".hpp") and path.parts[0] in ("src", "include")
               and path != NVCC_HEADER and not is_test_code(path)
               and path.parts[:2] != ("src", "gpu")]  # those want the CUDA runtime's headers
    cases = [(header, INTERNAL_LEVEL) for header in headers]
    cases += [(header, PUBLIC_LEVEL) for header in headers if is_public(header)]
    cases += [(header, C_LEVEL) for header in headers if header in C_HEADERS]
    findings = []  # and, unlike the other checks, a count of those that passed
    keys = {case: lone_header_key(tree, *case) for case in cases}
    known = set()
    if PASSED_HEADERS.exists():
        known = set(json.loads(PASSED_HEADERS.read_text()))
    passed = set(keys.values()) & known
    anew = [case for case in cases if keys[case] not in known]
    work = []  # chains, each with its level
    for level in (INTERNAL_LEVEL, PUBLIC_LEVEL, C_LEVEL):
        of_level = [header for header, its_level in anew if its_level == level]
        for slow in (False, True):
            some = [header for header in of_level if includes_slow_header(tree, header) == slow]
            work += [(chain, level) for chain in chains_of(tree, some)]
    with tempfile.TemporaryDirectory() as folder, \
            concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        compiler = LoneHeaderCompiler(tree, folder)
        for complaints, (_, level) in zip(pool.map(lambda one: compiler.complaints(*one), work),
                                          work):
            for header, complaint in complaints:
                if complaint is None:
                    passed.add(keys[header, level])
                else:
                    findings.append(f"{header}: does not compile alone as {level}: {complaint}")
    PASSED_HEADERS.parent.mkdir(exist_ok=True)
    PASSED_HEADERS.write_text(json.dumps(sorted(passed)))
    return len(cases) - len(findings), findings


CHECKS = {
    "layers": check_layers,
    "cycles": check_cycles,
    "extensions": check_extensions,
    "public": check_public,
    "cuda-arch": check_cuda_arch,
    "doors": check_doors,
    "callers": check_callers,
    "spdx": check_spdx,
    "lines": check_lines,
    "todo": check_todo,
    "registered": check_registered,
    "version": check_version,
    "links": check_links,
    "format": check_format,
    "headers": check_headers,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checks", nargs="*", metavar="CHECK")
    parser.add_argument("--list", action="store_true", help="name the checks and stop")
    arguments = parser.parse_args()
    if arguments.list:
        for name, function in CHECKS.items():
            print(f"{name:12} {function.__doc__}")
        return 0
    unknown = [name for name in arguments.checks if name not in CHECKS]
    if unknown:
        parser.error(f"no such check: {unknown[0]} (one of {', '.join(CHECKS)})")

    tree = Tree()
    tree.file_set = set(tree.files)
    passed = failed = skipped = 0
    for name in arguments.checks or CHECKS:
        try:
            if name == "headers":
                good, findings = check_headers(tree)
                passed += good
                failed += len(findings)
            else:
                findings = list(CHECKS[name](tree))
                passed += not findings
                failed += bool(findings)
        except LookupError as reason:
            print(f"{name}: skipped: {reason}")
            skipped += 1
            continue
        for finding in findings:
            print(f"{name}: {finding}")
    print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
