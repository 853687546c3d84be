"""Compares the files git keeps under src and models (on standard input) with those in a wheel; fails if they differ."""

import sys
import zipfile


def installed_name(path: str) -> str:
    """Return where a source file lands when it is installed."""
    folder, _, rest = path.partition("/")
    return rest if folder == "src" else f"evalbayes/models/{rest}"


def main(wheel: str, sources: list[str]) -> int:
    """Return 0 when ``wheel`` holds exactly ``sources``, else print the difference and return 1."""
    expected = {installed_name(path) for path in sources}
    with zipfile.ZipFile(wheel) as archive:
        found = {name for name in archive.namelist() if ".dist-info/" not in name}
    for name in sorted(expected - found):
        print(f"in git, not in the wheel: {name}", file=sys.stderr)
    for name in sorted(found - expected):
        print(f"in the wheel, not in git: {name}", file=sys.stderr)
    print(f"{len(expected)} source files, {len(found)} files in the wheel")
    return 1 if expected != found or not expected else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.stdin.read().split("\n")[:-1]))
