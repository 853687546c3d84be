"""The package as a thing to install: its version, its weight at import, and what its files must not contain."""

import doctest
import importlib
import pkgutil
import re
import subprocess
import sys
import time
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

import evalbayes

ROOT = Path(__file__).resolve().parents[1]
HEAVY = ("pymc", "pytensor", "arviz", "jax", "matplotlib", "xarray", "pandas", "numpy", "scipy")
LIMIT = 0.5
"""Seconds that `import evalbayes` and `evalbayes --help` may take, warm."""


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *words], capture_output=True, text=True, check=True, cwd=ROOT)


def fastest(*words: str, times: int = 5) -> float:
    """The least of several wall times: the load of the machine only ever adds."""
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        run(*words)
        taken.append(time.perf_counter() - start)
    return min(taken)


def tracked() -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "-z"], capture_output=True, text=True, cwd=ROOT)
    names = listed.stdout.split("\0")[:-1] if listed.returncode == 0 else []
    return [ROOT / name for name in names if (ROOT / name).is_file()]


def test_version_is_one() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert evalbayes.__version__ == declared == metadata.version("evalbayes")
    assert run("-m", "evalbayes", "--version").stdout.split() == ["evalbayes", declared]


@pytest.mark.parametrize("words", [("-c", "import evalbayes"), ("-m", "evalbayes", "--help")], ids=["import", "help"])
def test_starts_fast(words: tuple[str, ...]) -> None:
    taken = fastest(*words)
    print(f"{' '.join(words)}: {taken:.3f} s")
    assert taken < LIMIT


@pytest.mark.parametrize("start", ["", "import evalbayes.cli; sys.argv[1:] = ['--help']; evalbayes.cli.main()"])
def test_nothing_heavy_is_imported(start: str) -> None:
    code = f"""
import sys, evalbayes
try:
    {start or "pass"}
except SystemExit:
    pass
print([name for name in {HEAVY} if name in sys.modules], file=sys.stderr)
"""
    assert run("-c", code).stderr.strip() == "[]"


def test_what_fits_nothing_needs_no_sampler() -> None:
    """Counting, simulating, and asking a saved fit."""
    code = """
import sys
from evalbayes import board, check, design, frequentist, pairs, posterior, simulate
print([name for name in ("pymc", "pytensor", "nutpie", "jax", "arviz", "matplotlib") if name in sys.modules])
"""
    assert run("-c", code).stdout.strip() == "[]"


def test_every_public_name_is_lazy_and_real() -> None:
    for name in evalbayes.__all__:
        assert getattr(evalbayes, name) is not None


def test_names_of_functions_stay_functions_after_importing_their_modules() -> None:
    code = "import evalbayes as eb, evalbayes.read.table, evalbayes.report.forest\n"
    code += "print(*map(callable, (eb.read, eb.report)))"
    out = run("-c", code)
    assert out.stdout.split() == ["True", "True"]


def test_no_file_names_this_machine_or_an_index() -> None:
    # Built from parts, so that this file does not match itself.
    folders = "|".join(("root", "home", "work", "tmp", "opt", "Users"))
    machine = re.compile(rf"(?<![\w.])/(?:{folders})/[\w.]")
    index = re.compile("|".join(("index" + "-url", "find" + "-links", "pypi" + r"\.org", "files\\.python" + "hosted")))
    for path in tracked():
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        for number, line in enumerate(text.splitlines(), 1):
            assert not machine.search(line), f"{path.relative_to(ROOT)}:{number} names a machine's path: {line}"
            assert not index.search(line), f"{path.relative_to(ROOT)}:{number} names an index: {line}"


def test_constraints_pin_every_dependency_and_nothing_else() -> None:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    assert all(re.fullmatch(r"[\w.-]+==[\w.]+", line) for line in lines)
    pinned = {re.sub(r"[-_.]+", "-", line.split("==")[0]).lower() for line in lines}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"], *project["optional-dependencies"]["dev"]]
    assert {re.split(r"[<>=\[ ]", line)[0].lower() for line in wanted} <= pinned


def module_names() -> list[str]:
    found = [module.name for module in pkgutil.walk_packages(evalbayes.__path__, "evalbayes.")]
    return ["evalbayes", *(name for name in found if not name.endswith("__main__"))]


@pytest.mark.parametrize("name", module_names())
def test_examples_in_docstrings(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def find_python(folder: Path, **programs: str) -> subprocess.CompletedProcess[str]:
    """Run .ci/find-python where ``programs`` are all there is on PATH."""
    for name, line in programs.items():
        path = folder / name.replace("_", ".")
        path.write_text(f"#!/bin/sh\n{line}\n")
        path.chmod(0o755)
    env = {"PATH": str(folder), "HOME": str(folder)}
    return subprocess.run(["/bin/sh", ROOT / ".ci/find-python"], capture_output=True, text=True, env=env)


def test_a_python_that_exists_and_fails_is_passed_over(tmp_path: Path) -> None:
    found = find_python(tmp_path, python3_13="exit 127", python3_12=f'exec "{sys.executable}" "$@"')
    assert found.returncode == 0
    assert Path(found.stdout.strip()).resolve() == Path(sys.executable).resolve()


def test_no_python_is_one_clear_line(tmp_path: Path) -> None:
    found = find_python(tmp_path, python3="exit 3")
    assert found.returncode == 1
    assert re.fullmatch(r"evalbayes needs Python 3\.12 or newer; none among: .*python3 .*\n", found.stderr)
    found = find_python(tmp_path, python3="exit 4")
    assert found.returncode == 1
    assert re.fullmatch(r"python3 is new enough but has no ensurepip: .*\n", found.stderr)


@pytest.mark.parametrize(
    ("cases", "code"),
    [
        ('<testcase classname="a" name="b"/>', 0),
        ('<testcase classname="a" name="b"/><testcase classname="a" name="c"><skipped message="why"/></testcase>', 1),
        ("", 1),
    ],
    ids=["passed", "skipped", "nothing ran"],
)
def test_ci_refuses_skips_and_empty_runs(tmp_path: Path, cases: str, code: int) -> None:
    path = tmp_path / "tests.xml"
    path.write_text(f"<testsuites><testsuite>{cases}</testsuite></testsuites>")
    done = subprocess.run([sys.executable, ROOT / ".ci/check_tests.py", path], capture_output=True, text=True)
    assert done.returncode == code, done.stderr
