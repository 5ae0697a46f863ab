"""Running questions through methods: bounded concurrency, one result line as each finishes.

Questions come before configurations in the order of work, so that whatever ends a run early
leaves the configurations with (nearly) the same questions, which is what paired tests need.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal, Protocol

from evals.metrics import score_question
from evals.plan import PlannedCell
from evals.prices import Price, cost_of
from evals.records import ResultLine, prediction_of
from evals.run_folder import Key
from evals.tracing import run_config, tracing_allowed, tracing_off
from nodes.question_file import GoldQuestion
from nodes.report import empty_result

MODEL_FAULTS = 3
"""After so many questions in a row without the model answering, a run stops."""


@dataclass(frozen=True)
class Task:
    """One question for one cell, with its linked topic entities."""

    cell: PlannedCell
    question: GoldQuestion
    topics: tuple[str, ...] = ()

    @property
    def key(self) -> Key:
        """What the result line will be the result of."""
        return self.cell.label, self.cell.dataset, self.cell.context.model, self.question.id


@dataclass(frozen=True)
class Budgets:
    """Bounds of a whole run, earlier sessions of it included (seconds: of this session)."""

    calls: int | None = None
    tokens: int | None = None
    dollars: float | None = None
    seconds: float | None = None


@dataclass
class Spent:
    """What a run has cost: live model calls, their tokens and US dollars (None: not known)."""

    calls: int = 0
    tokens: int = 0
    dollars: float | None = 0.0

    def add(self, calls: Iterable[Mapping[str, Any]], dollars: float | None) -> None:
        """Add the calls of a question."""
        live = [call for call in calls if not call["cached"]]
        self.calls += len(live)
        self.tokens += sum(call["input_tokens"] + call["output_tokens"] for call in live)
        self.dollars = None if self.dollars is None or dollars is None else self.dollars + dollars


@dataclass(frozen=True)
class Ending:
    """How a run ended: `complete`, or by a budget, a model or a graph that is gone (`text`)."""

    by: Literal["complete", "budget", "model", "graph"]
    text: str = ""


class Observer(Protocol):
    """Who is told how a run gets on."""

    def finished(self, line: ResultLine, spent: Spent) -> None:
        """Hear that a question is done and its line on disk."""

    def said(self, text: str) -> None:
        """Hear what a reader should know (retries, a model's start)."""


@dataclass
class Runner:
    """Runs tasks; see `run`.

    Attributes:
        append: keeps a result line; when it returns the line is on disk.
        observer: told of every line.
        concurrency: questions in work at once.
        budgets: when one is reached no further question is started; those in work are finished.
        prices: by model specification.
        thread_prefix: makes the threads of this run unique.
        graph_fault: tells why the store is no longer what it was at the start; '' while it is.
        graphs: compiled graphs by method in place of the methods' own (with a checkpointer).
        spent: what earlier sessions of the run have cost; grows.
    """

    append: Callable[[ResultLine], None]
    observer: Observer
    concurrency: int = 1
    budgets: Budgets = field(default_factory=Budgets)
    prices: Mapping[str, Price] = field(default_factory=dict)
    thread_prefix: str = "eval"
    graphs: Mapping[str, Any] = field(default_factory=dict)
    graph_fault: Callable[[], str] = lambda: ""
    spent: Spent = field(default_factory=Spent)

    def __post_init__(self) -> None:
        self._waiting: deque[Task] = deque()
        self._again: dict[Key, int] = {}
        self._faults = self._alive = 0
        self._ending: Ending | None = None
        self._started = time.monotonic()

    def count(self, line: ResultLine, role_models: Mapping[str, str]) -> None:
        """Count what a line of an earlier session has cost, with its cell's models by role."""
        spec_of = {c["role"]: role_models.get(c["role"], line["model"]) for c in line["calls"]}
        self.spent.add(line["calls"], cost_of(line["calls"], spec_of, self.prices))

    async def run(self, tasks: Sequence[Task]) -> Ending:
        """Work the tasks off and return how that ended.

        A question whose model does not answer is put off to the end and tried once more; when that
        happens to several in a row, the run ends and leaves them open.
        """
        self._waiting = deque(tasks)
        async with asyncio.TaskGroup() as group:
            for _ in range(min(self.concurrency, max(1, len(tasks)))):
                group.create_task(self._work())
        return self._ending or Ending("complete")

    async def _work(self) -> None:
        while (task := self._next()) is not None:
            line = await self._answered(task)
            self.spent.add(line["calls"], self._dollars(task.cell, line))
            if task.cell.uses_graph and (fault := self.graph_fault()):
                self._ending = self._ending or Ending("graph", fault)
                continue
            if not self._model_absent(line):
                self._faults, self._alive = 0, self._alive + 1
            elif not self._is_final(task, line):
                continue
            self.append(line)
            self.observer.finished(line, self.spent)

    def _next(self) -> Task | None:
        if self._ending or not self._waiting:
            return None
        if reached := self._budget_reached():
            self._ending = Ending("budget", reached)
            return None
        return self._waiting.popleft()

    def _budget_reached(self) -> str:
        budgets, spent = self.budgets, self.spent
        if budgets.calls is not None and spent.calls >= budgets.calls:
            return f"the budget of {budgets.calls:,} model calls is reached"
        if budgets.tokens is not None and spent.tokens >= budgets.tokens:
            return f"the budget of {budgets.tokens:,} tokens is reached"
        if budgets.dollars is not None and spent.dollars is None:
            return "what the run has cost in dollars is not known (--prices gives prices)"
        if budgets.dollars is not None and (spent.dollars or 0) >= budgets.dollars:
            return f"the budget of ${budgets.dollars:g} is reached"
        elapsed = time.monotonic() - self._started
        if budgets.seconds is not None and elapsed >= budgets.seconds:
            return f"the budget of {budgets.seconds:g} seconds is reached"
        return ""

    @staticmethod
    def _model_absent(line: ResultLine) -> bool:
        error = line["result"].get("error") or {}
        return error.get("type") == "ModelError"

    def _is_final(self, task: Task, line: ResultLine) -> bool:
        """Tell whether a failure stays; else the question is put off, or the run ends.

        It stays when the model has answered other questions since this one failed first.
        """
        self._faults += 1
        message = str(line["result"]["error"]["message"])
        if self._faults >= max(MODEL_FAULTS, self.concurrency + 1):
            self._ending = self._ending or Ending("model", message)
            return False
        if self._ending:
            return False
        if task.key in self._again:
            if self._alive == self._again[task.key]:
                self._ending = Ending("model", message)
            return self._ending is None
        self._again[task.key] = self._alive
        self._waiting.append(task)
        self.observer.said(f"{task.cell.label}, {task.question.id} is put off: {message}")
        return False

    async def _answered(self, task: Task) -> ResultLine:
        started, clock = datetime.now(UTC), time.monotonic()
        thread = "/".join((self.thread_prefix, *task.key))
        state = await self._state(task, thread)
        result = state["result"]
        return ResultLine(
            label=task.cell.label,
            method=task.cell.method.name,
            dataset=task.cell.dataset,
            model=task.cell.context.model,
            question_id=task.question.id,
            outcome=score_question(task.question, prediction_of(result, task.question.id)).outcome,
            thread=thread,
            started=started.isoformat(timespec="seconds"),
            seconds=round(time.monotonic() - clock, 3),
            result=result,
            calls=[dict(call) for call in state.get("calls") or []],
        )

    async def _state(self, task: Task, thread: str) -> dict[str, Any]:
        """Return the final state; what a workflow does not catch becomes a failed result."""
        cell = task.cell
        graph = self._graph_of(cell)
        config: dict[str, Any] = run_config(
            label=cell.label,
            method=cell.method.name,
            dataset=cell.dataset,
            model=cell.context.model,
            question_id=task.question.id,
            prompts=cell.method.prompts,
        )
        config["configurable"] = {"thread_id": thread}
        options = {"durability": "exit"} if graph.checkpointer else {}
        asked = task.question.asked(task.topics if cell.uses_graph else ())
        try:
            if tracing_allowed():
                state = await graph.ainvoke(asked, config, context=cell.context, **options)
            else:
                with tracing_off():
                    state = await graph.ainvoke(asked, config, context=cell.context, **options)
        except Exception as error:  # noqa: BLE001 - one question must not end a run of thousands
            return {"result": empty_result(cell.method.name, "failed", error)}
        return dict(state)

    def _graph_of(self, cell: PlannedCell) -> Any:
        return self.graphs.get(cell.method.name, cell.method.graph)

    def _dollars(self, cell: PlannedCell, line: ResultLine) -> float | None:
        settings = cell.context
        spec_of = {call["role"]: settings.model_of(call["role"]) for call in line["calls"]}
        return cost_of(line["calls"], spec_of, self.prices)
