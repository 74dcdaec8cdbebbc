#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts test cases after a ctest run.

ctest counts programs; a GoogleTest program holds many cases. Each of them leaves an XML file
(cmake/GofsTest.cmake), and this module adds those up. A program that ctest calls failed counts at
least one failure even when its XML shows none: it crashed, hung, leaked, or its sanitizer spoke.
"""

import argparse
import pathlib
import sys
import xml.etree.ElementTree as ElementTree


def gtest_counts(path):
    """(passed, failed, skipped) of one GoogleTest XML file, or None when it is absent or torn."""
    try:
        root = ElementTree.parse(path).getroot()
    except (OSError, ElementTree.ParseError):
        return None
    passed = failed = skipped = 0
    for case in root.iter("testcase"):
        if case.get("status") == "notrun":
            continue
        if case.find("failure") is not None:
            failed += 1
        elif case.get("result") == "skipped":
            skipped += 1
        else:
            passed += 1
    return passed, failed, skipped


def is_skip(program):
    """A program that asked to be skipped; one that ctest could not find is not that."""
    skip = program.find("skipped")
    return skip is not None and skip.get("message", "").startswith("SKIP_")


def sum_results(junit, results_folder):
    """Sums a ctest JUnit file: (passed, failed, skipped, names of the programs that failed)."""
    passed = failed = skipped = 0
    bad = []
    for program in ElementTree.parse(junit).getroot().iter("testcase"):
        name = program.get("name")
        status = program.get("status")
        ok = status == "run"
        if status == "disabled" or (status == "notrun" and is_skip(program)):
            skipped += 1
            continue
        cases = gtest_counts(pathlib.Path(results_folder) / (name + ".xml"))
        if cases is None:
            cases = (1, 0, 0) if ok else (0, 1, 0)
        elif not ok and cases[1] == 0:
            cases = (cases[0], 1, cases[2])
        passed += cases[0]
        failed += cases[1]
        skipped += cases[2]
        if not ok:
            bad.append(name)
    return passed, failed, skipped, bad


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("junit", help="what ctest --output-junit wrote")
    parser.add_argument("results", help="folder of the GoogleTest XML files")
    arguments = parser.parse_args()
    passed, failed, skipped, bad = sum_results(arguments.junit, arguments.results)
    for name in bad:
        print(f"failed: {name}")
    print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
