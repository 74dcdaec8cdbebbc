#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts test cases after a ctest run.

ctest counts programs; a GoogleTest program holds many cases. Each of them leaves an XML file
(cmake/GofsTest.cmake), and this module adds those up. A program that ctest calls failed counts at
least one failure even when its XML shows none: it crashed, hung, leaked, or its sanitizer spoke.
"""

import argparse
import pathlib
import re
import sys
import xml.etree.ElementTree as ElementTree


MESSAGE_LINES = 6
# What a sanitizer or a crash says first.
FINDING = re.compile(r"ERROR: |WARNING: ThreadSanitizer|runtime error:|SUMMARY: |Fatal|Exception")
CASE = re.compile(r"\[ RUN +\] (\S+)")
# A call in a sanitizer's stack, of which only those in the project's own files tell something.
FRAME = re.compile(r"^\s+#\d+ (?:0x[0-9a-f]+ in )?(.*)$")
OWN_FRAME = re.compile(r"(.*) (?:\S*/)?((?:src|include/gofs|python|tests)/\S+?:\d+)")
FRAMES = 8


def gtest_counts(path):
    """(passed, failed, skipped, what failed) of one GoogleTest XML file, or None when it is absent
    or torn. What failed is the name of each such case and the first lines of its first failure."""
    try:
        root = ElementTree.parse(path).getroot()
    except (OSError, ElementTree.ParseError):
        return None
    passed = skipped = 0
    failures = []
    for case in root.iter("testcase"):
        failure = case.find("failure")
        if case.get("status") == "notrun":
            continue
        if failure is not None:
            lines = failure.get("message", "").splitlines()[:MESSAGE_LINES]
            failures.append("\n    ".join([f"{case.get('classname')}.{case.get('name')}", *lines]))
        elif case.get("result") == "skipped":
            skipped += 1
        else:
            passed += 1
    return passed, len(failures), skipped, failures


def case_seconds(junit, results_folder):
    """(seconds, name) of each case; of a program that left none, of the program."""
    found = []
    for program in ElementTree.parse(junit).getroot().iter("testcase"):
        name = program.get("name")
        try:
            cases = list(ElementTree.parse(
                pathlib.Path(results_folder) / (name + ".xml")).getroot().iter("testcase"))
        except (OSError, ElementTree.ParseError):
            cases = []
        found += [(float(case.get("time", 0)), f"{name} {case.get('classname')}.{case.get('name')}")
                  for case in cases]
        if not cases:
            found.append((float(program.get("time", 0)), name))
    return found


def is_skip(program):
    """A program that asked to be skipped; one that ctest could not find is not that."""
    skip = program.find("skipped")
    return skip is not None and skip.get("message", "").startswith("SKIP_")


def function_name(signature):
    """`void gofs::f<T>(int)` as `gofs::f`."""
    while "<" in signature:
        shorter = re.sub(r"<[^<>]*>", "", signature)
        if shorter == signature:
            break
        signature = shorter
    return signature.split("(")[0].split(" ")[-1]


def findings(output):
    """What a program's output says of why it ended, where no case did: the case that ran then, what
    a sanitizer found, and who called whom in each stack that it shows."""
    found = []
    case = heading = ""
    calls = []

    def end_stack():
        if found and calls:
            found.append(f"{heading} {' < '.join(calls[:FRAMES])}")
        calls.clear()

    for line in output.splitlines():
        frame = FRAME.match(line)
        if frame:
            own = OWN_FRAME.match(frame[1])
            if own:
                calls.append(f"{function_name(own[1])} ({own[2]})")
            continue
        end_stack()
        heading = line.strip()
        case = CASE.match(line)[1] if CASE.match(line) else case
        if FINDING.search(line):
            found.append(" ".join(filter(None, [case and f"{case}:", heading])))
    end_stack()
    return found[:2 * MESSAGE_LINES]


def sum_results(junit, results_folder):
    """Sums a ctest JUnit file: (passed, failed, skipped, what failed)."""
    passed = failed = skipped = 0
    bad = []
    for program in ElementTree.parse(junit).getroot().iter("testcase"):
        name = program.get("name")
        status = program.get("status")
        ok = status == "run"
        if status == "disabled" or (status == "notrun" and is_skip(program)):
            skipped += 1
            continue
        output = program.findtext("system-out", "")
        cases = gtest_counts(pathlib.Path(results_folder) / (name + ".xml"))
        if cases is None:
            cases = (1, 0, 0, []) if ok else (0, 1, 0, findings(output))
        elif not ok and cases[1] == 0:
            cases = (cases[0], 1, cases[2], findings(output))
        passed += cases[0]
        failed += cases[1]
        skipped += cases[2]
        if not ok:
            bad.append("\n    ".join([f"{name} failed", *cases[3]]))
    return passed, failed, skipped, bad


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("junit", help="what ctest --output-junit wrote")
    parser.add_argument("results", help="folder of the GoogleTest XML files")
    arguments = parser.parse_args()
    passed, failed, skipped, bad = sum_results(arguments.junit, arguments.results)
    for name in bad:
        print(name)
    print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
