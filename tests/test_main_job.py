"""The main job as a user runs it: a cold process, empty caches, the real board, time and memory."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

SECONDS, GIGABYTES = 30, 2


def test_report_on_134_by_500_from_cold_within_time_and_memory(shared_data: Path, tmp_path: Path):
    command = [sys.executable, "-m", "evalbayes", "report", shared_data / "swebench_verified_134.csv.gz"]
    environment = os.environ | {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    environment.pop("JAX_COMPILATION_CACHE_DIR", None)
    started = time.perf_counter()
    running = subprocess.Popen([*command, "-o", tmp_path / "report.html"], env=environment)
    _, status, used = os.wait4(running.pid, 0)
    seconds, gigabytes = time.perf_counter() - started, used.ru_maxrss / 1e6
    running.returncode = os.waitstatus_to_exitcode(status)
    seen = json.loads((tmp_path / "report.json").read_text())
    fit, answers = seen["fit"], {(a["quantity"], a.get("tasks")): a["values"] for a in seen["answers"]}
    print(
        f"134 x 500 from cold: {seconds:.1f} s, {gigabytes:.2f} GB, k-hat {fit['k_hat']:.2f}, "
        f"weight ESS {fit['weight_ess']:.0f} of {fit['proposals']}, {fit['grid_nodes']} nodes"
    )
    assert running.returncode == 0
    assert seconds < SECONDS
    assert gigabytes < GIGABYTES
    assert fit["k_hat"] < 0.5
    assert fit["weight_ess"] >= 400
    for quantity in ("score", "rank", "top_k"):
        assert len(answers[quantity, "sampled"]) == 134
