"""The main job as a user runs it: a cold process, empty caches, the real board, time and memory."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

SECONDS, GIGABYTES = 30, 2


RUN = """
import atexit, shutil, sys
from evalbayes.cli import main
status = sys.argv.pop(1)
atexit.register(shutil.copyfile, "/proc/self/status", status)
main()
"""
"""The command line as it is, which on leaving says how much memory it took at most."""


def test_report_on_134_by_500_from_cold_within_time_and_memory(shared_data: Path, tmp_path: Path):
    status, page = tmp_path / "status", tmp_path / "report.html"
    source = shared_data / "swebench_verified_134.csv.gz"
    environment = os.environ | {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    environment.pop("JAX_COMPILATION_CACHE_DIR", None)
    started = time.perf_counter()
    command = [sys.executable, "-c", RUN, status, "report", source, "-o", page]
    done = subprocess.run(command, env=environment, check=False)
    seconds = time.perf_counter() - started
    # Not the rusage of a child, which starts from the memory of the process that forked it.
    peak = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
    gigabytes = int(peak.split()[1]) / 1e6
    seen = json.loads(page.with_suffix(".json").read_text())
    fit, answers = seen["fit"], {(a["quantity"], a.get("tasks")): a["values"] for a in seen["answers"]}
    print(
        f"134 x 500 from cold: {seconds:.1f} s, {gigabytes:.2f} GB, k-hat {fit['k_hat']:.2f}, "
        f"weight ESS {fit['weight_ess']:.0f} of {fit['proposals']}, {fit['grid_nodes']} nodes"
    )
    assert done.returncode == 0
    assert seconds < SECONDS
    assert gigabytes < GIGABYTES
    assert fit["k_hat"] < 0.5
    assert fit["weight_ess"] >= 400
    for quantity in ("score", "rank", "top_k"):
        assert len(answers[quantity, "sampled"]) == 134
