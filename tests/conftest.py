"""What tests share: the folder of real boards, and a writer of small files."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real boards: EVALBAYES_SHARED/data, or ../shared/data beside the repository."""
    shared = Path(os.environ.get("EVALBAYES_SHARED") or Path(__file__).parents[2] / "shared")
    folder = shared / "data"
    if not folder.is_dir():
        reason = f"no real boards at {folder}; set EVALBAYES_SHARED"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    return folder


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Write text or bytes to a file of the test's own and return its path."""

    def write(content: str | bytes, name: str = "runs.csv") -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write
