#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Judges `gofs` by what the kernel said: compares an image, read with the gofs command, with the
manifest that the kernel's own view of the same image gave (guest/manifest.h).

  compare.py IMAGE MANIFEST [--gofs COMMAND] [--backend cpu|cuda] [--refused PATH]...

One check per object (everything that stat and readlink tell, and its extended attributes), one
per regular file for its content, one per directory entry that the kernel does not know, and a few
for the image as a whole. Prints a line for each difference and ends with `N passed, N failed`.

What is used of gofs:
  gofs ls IMG / -R -l --json            one JSON object per line and object, / included
  gofs sum IMG PATH [-r]                sha256sum's format and escaping, absolute paths
  gofs cat IMG PATH --offset N --length N    for files that are too large to be read whole
  gofs info IMG --json                  "clean", and "space" for what statfs tells
"""

import argparse
import dataclasses
import hashlib
import json
import re
import shlex
import subprocess
import sys
import time

TIMEOUT_S = 600
# Larger files are compared by the manifest's probes only, and are not given to `gofs sum`.
SUM_MAX = 1 << 30
# Probes that lie this close together are read with one command.
WINDOW = 64 << 20
DIFFERENCES_MAX = 50

COMPARED = ("ino", "type", "mode", "uid", "gid", "nlink", "size", "blocks", "atime", "mtime",
            "ctime", "rdev", "target_hex")
# Told by the kernel only where there are any. Attributes are sorted by name on both sides.
ABSENT = {"btime": None, "xattrs": []}

# Of the kernel's statfs, and what `gofs info` calls it.
SPACE = {"blocks": "blocks", "bfree": "blocks_free", "files": "files", "ffree": "files_free"}


class ProtocolError(Exception):
    """gofs ended badly or printed something that is not what its command line promises."""


@dataclasses.dataclass
class Result:
    code: int
    out: bytes
    err: bytes


class Gofs:
    """The command under test."""

    def __init__(self, command, backend=""):
        self.command = shlex.split(command)
        self.options = ["--backend", backend] if backend else []
        self.calls = 0
        self.seconds = 0.0

    def run(self, *words):
        """Ends within TIMEOUT_S; a crash or a time-out is a ProtocolError."""
        line = [*self.command, *words, *self.options]
        self.calls += 1
        started = time.monotonic()
        try:
            done = subprocess.run(line, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, timeout=TIMEOUT_S, check=False)
        except subprocess.TimeoutExpired:
            raise ProtocolError(f"{spell(line)}: still running after {TIMEOUT_S} s") from None
        self.seconds += time.monotonic() - started
        if done.returncode not in (0, 1):
            raise ProtocolError(f"{spell(line)}: ended with {done.returncode}: {tail(done.stderr)}")
        return Result(done.returncode, done.stdout, done.stderr)

    def must(self, *words):
        result = self.run(*words)
        if result.code != 0:
            raise ProtocolError(f"{spell(words)}: ended with {result.code}: {tail(result.err)}")
        return result


def spell(words):
    return " ".join(shlex.quote(w if isinstance(w, str) else w.decode("utf-8", "backslashreplace"))
                    for w in words)[:400]


def tail(data):
    return data.decode("utf-8", "backslashreplace").strip()[-500:]


def show(path):
    """A path as one readable word of ASCII."""
    return repr(path)[2:-1]


# ---- what both sides say -------------------------------------------------------------------------


def parse_objects(data, source):
    """{path: object} of JSON lines; a path that occurs twice is an error."""
    objects = {}
    for number, line in enumerate(data.split(b"\n"), 1):
        if not line:
            continue
        try:
            entry = json.loads(line)
            path = bytes.fromhex(entry["path_hex"])
        except (ValueError, KeyError, TypeError) as error:
            raise ProtocolError(f"{source}, line {number}: {error!r}: {line[:200]!r}") from None
        if path in objects:
            raise ProtocolError(f"{source}: {show(path)} is listed twice")
        objects[path] = entry
    return objects


def read_manifest(path):
    """(what the first line says about the volume, {path: object})."""
    with open(path, "rb") as file:
        header = json.loads(file.readline())
        return header, parse_objects(file.read(), str(path))


def parse_sums(data):
    """{path: digest} of sha256sum's output, where a backslash in front means an escaped name."""
    sums = {}
    for line in data.split(b"\n"):
        if not line:
            continue
        escaped = line.startswith(b"\\")
        digest, separator, name = line[escaped:].partition(b"  ")
        if not separator or not re.fullmatch(rb"[0-9a-f]{64}", digest):
            raise ProtocolError(f"gofs sum printed {line[:200]!r}")
        if escaped:
            unescape = {b"\\n": b"\n", b"\\r": b"\r", b"\\\\": b"\\"}
            name = re.sub(rb"\\.", lambda found: unescape.get(found[0], found[0]), name)
        if name in sums:
            raise ProtocolError(f"gofs sum printed {show(name)} twice")
        sums[name] = digest.decode()
    return sums


def object_differences(kernel, ours):
    """One text per field that differs."""
    texts = []
    for field in COMPARED:
        if field == "target_hex" and kernel["type"] != "symlink":
            continue
        if field not in ours:
            texts.append(f"{field} is missing")
        elif kernel[field] != ours[field]:
            texts.append(f"{field} {ours[field]}, kernel {kernel[field]}")
    for field, absent in ABSENT.items():
        said, wanted = ours.get(field), kernel.get(field, absent)
        if said != wanted:
            texts.append(f"{field} {said}, kernel {wanted}")
    return texts


def below(path, folders):
    return any(path == folder or path.startswith(folder + b"/") for folder in folders)


# ---- the comparison ------------------------------------------------------------------------------


class Comparison:
    def __init__(self, gofs, image, manifest, refused=(), unclean=False, probes_max=0, say=print):
        self.gofs = gofs
        self.image = str(image)
        self.refused = [path.encode() for path in refused]
        self.unclean = unclean
        self.probes_max = probes_max
        self.say = say
        self.passed = 0
        self.failed = 0
        header, self.objects = read_manifest(manifest)
        self.statfs = header["statfs"]
        self.probed_bytes = 0

    def check(self, name, difference):
        """Counts a check; `difference` is empty when all is well."""
        if not difference:
            self.passed += 1
            return
        self.failed += 1
        if self.failed <= DIFFERENCES_MAX:
            self.say(f"  {name}: {difference}")
        elif self.failed == DIFFERENCES_MAX + 1:
            self.say("  (further differences are only counted)")

    def run(self):
        for step in (self.compare_objects, self.compare_sums, self.compare_probes,
                     self.check_refusals, self.compare_volume):
            try:
                step()
            except ProtocolError as error:
                self.check(step.__name__, str(error))
        return self.failed == 0

    def compare_objects(self):
        listing = self.gofs.run("ls", self.image, "/", "-R", "-l", "--json")
        if listing.code != 0 and not self.refused:
            raise ProtocolError(f"ls ended with 1: {tail(listing.err)}")
        ours = parse_objects(listing.out, "gofs ls")
        for path, kernel in self.objects.items():
            if below(path, self.refused):
                continue
            if path not in ours:
                self.check(show(path), "the kernel has it, gofs does not")
            else:
                self.check(show(path), "; ".join(object_differences(kernel, ours[path])))
        for path in ours:
            if path not in self.objects and not below(path, self.refused):
                self.check(show(path), "gofs has it, the kernel does not")

    def whole_files(self):
        """{path: digest} of the files that can be read whole."""
        return {path: entry["sha256"] for path, entry in self.objects.items()
                if "sha256" in entry and not below(path, self.refused)}

    def is_heavy(self, path):
        entry = self.objects[path]
        return entry["type"] == "regular" and (entry["size"] > SUM_MAX or
                                               below(path, self.refused))

    def sum_roots(self):
        """What to hand to `gofs sum`: all of it, or what is beside files too large to be read."""
        heavy = [path for path in self.objects if self.is_heavy(path)]
        if not heavy and not self.refused:
            return [b"/"]
        spoilt = {path.split(b"/")[1] for path in heavy}
        spoilt |= {path.split(b"/")[1] for path in self.refused}
        tops = {path.split(b"/")[1] for path in self.objects if path != b"/"}
        roots = [b"/" + top for top in sorted(tops - spoilt)]
        return roots + [path for path in self.whole_files() if path.split(b"/")[1] in spoilt]

    def compare_sums(self):
        expected = self.whole_files()
        probed = {path for path, entry in self.objects.items() if "probes" in entry}
        sums = {}
        for root in self.sum_roots():
            if root != b"/" and self.objects[root]["type"] not in ("regular", "directory"):
                continue
            is_directory = root == b"/" or self.objects[root]["type"] == "directory"
            said = self.gofs.must("sum", self.image, root, *(["-r"] if is_directory else []))
            sums.update(parse_sums(said.out))
        for path, digest in expected.items():
            got = sums.get(path, "no digest")
            self.check(show(path) + " (content)",
                       "" if got == digest else f"{got}, kernel {digest}")
        for path in sums.keys() - expected.keys() - probed:
            self.check(show(path), "gofs sums it, the kernel has no such file")

    def compare_probes(self):
        """Files too large to be hashed whole: all their data, and a little of their holes."""
        names = {}  # by inode: what has several names is read once
        for path, entry in self.objects.items():
            if "probes" in entry and not below(path, self.refused):
                names.setdefault(entry["ino"], path)
        for path in names.values():
            entry = self.objects[path]
            probes = self.thinned(sorted(entry["probes"]), len(names))
            self.check(show(path) + " (content)", self.probe_file(path, entry["size"], probes))

    def thinned(self, probes, files):
        """Every probe, or about probes_max of them for the image, evenly spread."""
        if not self.probes_max:
            return probes
        keep = max(2, self.probes_max // max(1, files))
        step = max(1, -(-len(probes) // keep))
        return probes[::step]

    def probe_file(self, path, size, probes):
        at = 0
        while at < len(probes):
            start = probes[at][0]
            end = at
            while end < len(probes) and probes[end][0] + probes[end][1] - start <= WINDOW:
                end += 1
            end = max(end, at + 1)
            stop = max(min(size, probe[0] + probe[1]) for probe in probes[at:end])
            try:
                said = self.gofs.must("cat", self.image, path, "--offset", str(start), "--length",
                                      str(stop - start))
            except ProtocolError as error:
                return str(error)
            if len(said.out) != stop - start:
                return f"{len(said.out)} bytes at {start}, wanted {stop - start}"
            self.probed_bytes += len(said.out)
            for offset, length, digest in probes[at:end]:
                data = said.out[offset - start:min(size, offset + length) - start]
                if hashlib.sha256(data).hexdigest() != digest:
                    return f"other content at {offset} (+{length})"
            at = end
        return ""

    def check_refusals(self):
        """A file that is not supported is refused by name, or read rightly; nothing else."""
        for path, entry in self.objects.items():
            if entry["type"] != "regular" or not below(path, self.refused):
                continue
            try:
                said = self.gofs.run("cat", self.image, path)
            except ProtocolError as error:
                self.check(show(path) + " (refusal)", str(error))
                continue
            if said.code == 0:
                got = hashlib.sha256(said.out).hexdigest()
                right = not entry.get("encrypted") and got == entry.get("sha256")
                self.check(show(path) + " (content)", "" if right else "wrong content, not refused")
            else:
                lines = said.err.strip().split(b"\n")
                good = len(lines) == 1 and lines[0].startswith(b"gofs: ") and not said.out
                self.check(show(path) + " (refusal)", "" if good else f"refused with {lines[:3]!r}")

    def compare_volume(self):
        """What statfs says; and whether the volume was unmounted, which gofs must notice."""
        said = self.gofs.must("info", self.image, "--json")
        try:
            info = json.loads(said.out)
            clean, space = info["clean"], info["space"]
        except (ValueError, KeyError) as error:
            raise ProtocolError(f"gofs info --json: {error!r}") from None
        self.check("info (clean)", "" if clean is not self.unclean else f"says clean: {clean}")
        self.check("info (space)", "; ".join(
            f"{ours} {space.get(ours)}, kernel {self.statfs[kernels]}"
            for kernels, ours in SPACE.items() if space.get(ours) != self.statfs[kernels]))

    def summary(self):
        return (f"{len(self.objects)} objects, {self.gofs.calls} calls of gofs in "
                f"{self.gofs.seconds:.1f} s")


def main():
    parser = argparse.ArgumentParser(
        description="Compare what gofs reads with what the kernel said.")
    parser.add_argument("image")
    parser.add_argument("manifest")
    parser.add_argument("--gofs", default="build/gofs", help="the command under test")
    parser.add_argument("--backend", default="", help="cpu or cuda")
    parser.add_argument("--refused", action="append", default=[], metavar="PATH",
                        help="files below PATH may be refused")
    parser.add_argument("--unclean", action="store_true", help="the volume was not unmounted")
    parser.add_argument("--probes-max", type=int, default=0,
                        help="read at most about so many probes")
    args = parser.parse_args()
    comparison = Comparison(Gofs(args.gofs, args.backend), args.image, args.manifest, args.refused,
                            args.unclean, args.probes_max)
    comparison.run()
    print(comparison.summary())
    print(f"{comparison.passed} passed, {comparison.failed} failed")
    return 0 if comparison.failed == 0 and comparison.passed > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
