"""One small good log of every format, each in a folder of its own: what damage is done to."""

import json
from collections.abc import Callable
from pathlib import Path

import pandas as pd

TASKS = [f"task-{i}" for i in range(6)]


def csv(folder: Path) -> Path:
    return _text(folder / "runs.csv", "config,task,run,outcome\n" + "".join(f"é,{task},1,1\n" for task in TASKS))


def tsv(folder: Path) -> Path:
    return _text(folder / "runs.tsv", "config\ttask\trun\toutcome\n" + "".join(f"é\t{task}\t1\t0\n" for task in TASKS))


def jsonl(folder: Path) -> Path:
    rows = [{"config": "é", "task": task, "run": 1, "outcome": True} for task in TASKS]
    return _lines(folder / "runs.jsonl", rows)


def json_table(folder: Path) -> Path:
    return _json(folder / "runs.json", [{"config": "é", "task": task, "run": 1, "outcome": True} for task in TASKS])


def parquet(folder: Path) -> Path:
    path = folder / "runs.parquet"
    pd.DataFrame({"config": "é", "task": TASKS, "run": 1, "outcome": 1}).to_parquet(path)
    return path


def board(folder: Path) -> Path:
    from evalbayes import outcomes

    path = folder / "board.nc"
    outcomes.save(outcomes.from_counts([[1] * 6], [[2] * 6], configs=["é"], tasks=TASKS), path)
    return path


def inspect(folder: Path) -> Path:
    return _inspect(folder / "log.eval")


def inspect_json(folder: Path) -> Path:
    return _inspect(folder / "log.json")


def _inspect(path: Path) -> Path:
    from inspect_ai.log import EvalConfig, EvalDataset, EvalLog, EvalSample, EvalSpec, write_eval_log
    from inspect_ai.scorer import Score

    samples = [EvalSample(id=name, epoch=1, input="é", target="a", scores={"s": Score(value="C")}) for name in TASKS]
    about = {"created": "2026-01-01T00:00:00+00:00", "task": "demo", "model": "é", "task_id": "T"}
    spec = EvalSpec(**about, dataset=EvalDataset(sample_ids=TASKS), config=EvalConfig())
    write_eval_log(EvalLog(eval=spec, status="success", samples=samples), str(path))
    return path


def swe_bench(folder: Path) -> Path:
    ids = [f"owner__répo-{i}" for i in range(4)]
    return _json(folder / "m.run.json", {"resolved_ids": ids[:2], "unresolved_ids": ids[2:], "submitted_ids": ids})


def swe_bench_site(folder: Path) -> Path:
    details = {f"owner__repo-{i}": {"resolved": i % 2 == 0, "cost": 0.5} for i in range(4)}
    entry = {"name": "é", "resolved": 50.0, "per_instance_details": details}
    return _json(folder / "leaderboards.json", {"leaderboards": [{"name": "Verified", "results": [entry]}]})


def swe_bench_pro(folder: Path) -> Path:
    names = [f"instance_owner__répo-{i:040x}" for i in range(4)]
    return _json(folder / "eval_results.json", dict.fromkeys(names, True))


def terminal_bench(folder: Path) -> Path:
    _json(folder / "run_metadata.json", {"run_id": "r", "agent_name": "é", "model_name": "m"})
    trials = [
        {"trial_name": f"é-{task}.1-of-1.r", "task_id": f"é-{task}", "is_resolved": True, "failure_mode": "unset"}
        for task in TASKS
    ]
    return _json(folder / "results.json", {"results": trials, "n_resolved": 6, "n_unresolved": 0, "accuracy": 1.0})


def harbor(folder: Path) -> Path:
    trial = {
        "task_name": "é",
        "trial_name": "é__abc",
        "agent_info": {"name": "a", "version": "1", "model_info": {"name": "m", "provider": "p"}},
        "verifier_result": {"rewards": {"reward": 1.0}},
        "exception_info": None,
    }
    return _json(folder / "result.json", trial)


def evalplus(folder: Path) -> Path:
    sample = [{"base_status": "pass", "plus_status": "pass", "solution": "é"}]
    return _json(folder / "m_eval_results.json", {"date": "", "hash": "", "eval": dict.fromkeys(TASKS, sample)})


def tau_bench(folder: Path) -> Path:
    info = {"task": {"instruction": "é"}}
    runs = [{"task_id": i, "reward": 1.0, "info": info, "traj": [], "trial": 0} for i in range(4)]
    return _json(folder / "gpt.json", runs)


def every_eval_ever(folder: Path) -> Path:
    record = {
        "evaluation_id": "e",
        "model_id": "é",
        "evaluation_name": "b",
        "evaluation": {"score": 1.0, "is_correct": True},
    }
    return _lines(folder / "samples.jsonl", [{**record, "sample_id": task} for task in TASKS])


def tau2_bench(folder: Path) -> Path:
    info = {"agent_info": {"llm": "é"}, "environment_info": {"domain_name": "airline"}, "num_trials": 1}
    runs = [{"id": task, "task_id": task, "trial": 0, "reward_info": {"reward": 1.0}} for task in TASKS]
    return _json(folder / "results.json", {"timestamp": "2026-01-01", "info": info, "tasks": [], "simulations": runs})


def hal(folder: Path) -> Path:
    config = {"agent_name": "é", "run_id": "r1", "benchmark_name": "bench"}
    return _json(
        folder / "r1_UPLOAD.json", {"config": config, "results": {"successful_tasks": TASKS, "failed_tasks": []}}
    )


def metr(folder: Path) -> Path:
    return _lines(folder / "runs.jsonl", [{"alias": "é", "task_id": task, "score_binarized": 1} for task in TASKS])


def helm(folder: Path) -> Path:
    _json(folder / "run_spec.json", {"name": "mmlu:subject=é,model=org_m", "adapter_spec": {"model": "org/m"}})
    stats = [{"name": {"name": "exact_match", "split": "test"}, "count": 1, "sum": 1.0, "mean": 1.0}]
    about = {"train_trial_index": 0, "stats": stats}
    return _json(folder / "per_instance_stats.json", [{"instance_id": f"é{name}", **about} for name in TASKS])


def lm_eval(folder: Path) -> Path:
    row = {"doc": {"q": "é"}, "resps": [], "filtered_resps": [], "filter": "none", "metrics": ["acc"], "acc": 1.0}
    return _lines(folder / "samples_arc_2026-01-01T00-00-00.jsonl", [{"doc_id": i, **row} for i in range(4)])


def bfcl(folder: Path) -> Path:
    summary = {"accuracy": 0.0, "correct_count": 0, "total_count": 2}
    failures = [{"id": f"simple_{i}", "model_name": "é", "test_category": "simple", "valid": False} for i in range(2)]
    return _lines(folder / "BFCL_v3_simple_score.json", [summary, *failures])


FORMATS: dict[str, Callable[[Path], Path]] = {
    "table (csv)": csv,
    "table (tsv)": tsv,
    "table (jsonl)": jsonl,
    "table (json)": json_table,
    "table (parquet)": parquet,
    "board": board,
    "inspect": inspect,
    "inspect (json)": inspect_json,
    "swe_bench": swe_bench,
    "swe_bench_site": swe_bench_site,
    "swe_bench_pro": swe_bench_pro,
    "terminal_bench": terminal_bench,
    "harbor": harbor,
    "evalplus": evalplus,
    "tau_bench": tau_bench,
    "every_eval_ever": every_eval_ever,
    "tau2_bench": tau2_bench,
    "hal": hal,
    "metr": metr,
    "helm": helm,
    "lm_eval": lm_eval,
    "bfcl": bfcl,
}
"""By the name that the board's ``reader`` has."""


def _text(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def _json(path: Path, content: object) -> Path:
    return _text(path, json.dumps(content, ensure_ascii=False, indent=1))


def _lines(path: Path, rows: list[dict[str, object]]) -> Path:
    return _text(path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
