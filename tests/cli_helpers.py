"""Running the command in this process, and in one of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent


@dataclass
class Ran:
    """What a command left: exit status, stdout, stderr."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def command_in_process(capsys):
    """Return a function that runs `graphmoot` in this process."""
    from cli.main import main

    def run(*arguments: object) -> Ran:
        capsys.readouterr()
        status = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Ran(status, captured.out, captured.err)

    return run


def command_alone(*arguments: object, **options: Any) -> Ran:
    """Run `graphmoot` in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "cli.main", *map(str, arguments)],
        capture_output=True,
        cwd=ROOT,
        timeout=60,
        check=False,
        **options,
    )
    return Ran(done.returncode, done.stdout.decode("utf-8"), done.stderr.decode("utf-8"))


def error_lines(ran: Ran) -> list[str]:
    return [line for line in ran.err.splitlines() if line.startswith("error: ")]
