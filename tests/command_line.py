"""What a command printed and how it ended, for tests of the command line."""

import json
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, object]:
        def refuse(text: str) -> None:
            raise AssertionError(f"{text} is not JSON")

        found = json.loads(self.out, parse_constant=refuse)
        assert isinstance(found, dict)
        return found


Run = Callable[..., Done]
