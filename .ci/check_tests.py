"""Reads pytest's junit files: prints the number of skipped tests, fails on an unexpected one or when nothing ran."""

import sys
import xml.etree.ElementTree as ET

EXPECTED: set[str] = set()  # "module::test", each with a comment that says why it may be skipped


def main(paths: list[str]) -> int:
    """Return the exit code for the junit files at ``paths``."""
    cases = [case for path in paths for case in ET.parse(path).iter("testcase")]
    skipped = [case for case in cases if case.find("skipped") is not None]
    names = {f"{case.get('classname')}::{case.get('name')}": case.find("skipped") for case in skipped}
    print(f"{len(cases)} tests, {len(skipped)} skipped")
    unexpected = sorted(names.keys() - EXPECTED)
    for name in unexpected:
        node = names[name]
        print(f"unexpected skip: {name}: {node.get('message') if node is not None else ''}", file=sys.stderr)
    if len(cases) == len(skipped):
        print("no test ran", file=sys.stderr)
        return 1
    return 1 if unexpected else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
