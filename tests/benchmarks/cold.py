"""A fit from a cold start: a new process and no cache of compiled code. Run on request, half a minute.

    python tests/benchmarks/cold.py [BOARD [METHOD]]

BOARD is a log or the name of a packaged board; the packaged simulated one without it. Prints the seconds of the whole
process (Python, imports, reading, compiling, fitting), those of the fit, and what the fit's checks say.
"""

import json
import os
import subprocess
import sys
import tempfile
import time

FIT = """
import json, sys
import evalbayes as eb
from evalbayes.report import open_board
attrs = eb.fit(open_board(sys.argv[1]), method=sys.argv[2]).attrs
shown = ("model", "method", "seconds", "k_hat", "weight_ess", "proposals", "r_hat", "ess_bulk", "divergences")
print(json.dumps({name: attrs[name] for name in shown if name in attrs}, default=float))
"""


def main(source: str = "simulated", method: str = "auto") -> None:
    """Fit in a process of its own and print what it took."""
    with tempfile.TemporaryDirectory() as cache:
        started = time.perf_counter()
        command = [sys.executable, "-c", FIT, source, method]
        said = subprocess.run(
            command, env=os.environ | {"XDG_CACHE_HOME": cache}, stdout=subprocess.PIPE, text=True, check=True
        )
        print(f"whole process {time.perf_counter() - started:.1f} s", json.loads(said.stdout))


if __name__ == "__main__":
    main(*sys.argv[1:])
