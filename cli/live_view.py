"""What a run shows while it goes on, all on stderr: who speaks, K, round, what was decided.

On a terminal that is a panel for each reply and a line with the time; elsewhere plain lines.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any

from cli.output import note, stderr, visible

if TYPE_CHECKING:
    from rich.live import Live
    from rich.text import Text

ROLE_STYLES = {
    "proponent": "green",
    "challenger": "magenta",
    "decision_maker": "yellow",
    "judge": "cyan",
}
_ACTIONS = {
    "stop": "stop the debate",
    "continue": "go on with the same evidence",
    "expand": "expand the evidence to the next K",
}


class LiveView:
    """Shows the events of a run; a context manager."""

    def __init__(self) -> None:
        self.started = time.monotonic()
        self._speaking: Counter[str] = Counter()
        self._where = ""
        self._doing = "starting"
        self._live: Live | None = None

    def __enter__(self) -> LiveView:
        if sys.stderr.isatty():
            from rich.live import Live

            self._live = Live(
                self, console=stderr(), refresh_per_second=8, transient=True, redirect_stdout=False
            )
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def __rich__(self) -> Text:
        from rich.spinner import Spinner
        from rich.text import Text

        # A spinner of the moment's frame: its own clock would start anew with each refresh.
        now = time.monotonic() - self.started
        frames = Spinner("dots").frames
        who = ", ".join(
            f"{_named(role)} ({count})" if count > 1 else _named(role)
            for role, count in self._speaking.items()
        )
        parts = [self._where, f"{who} speaking" if who else self._doing, f"{now:.0f} s"]
        frame = frames[int(now * 10) % len(frames)]
        return Text(f"{frame} {' · '.join(part for part in parts if part)}", style="dim")

    def on_event(self, event: Mapping[str, Any]) -> None:
        """Show one event; kinds that are not known are passed over."""
        show = getattr(self, f"_on_{event.get('event')}", None)
        if show is not None:
            show(event)

    def say(self, text: str, style: str = "") -> None:
        """Print a line above the status line."""
        if self._live is None:
            note(text)
            return
        from rich.text import Text

        self._live.console.print(Text(visible(text), style=style))

    def _on_linked(self, event: Mapping[str, Any]) -> None:
        mentions = event.get("mentions") or []
        if mentions:
            names = ", ".join(_linked(mention) for mention in mentions)
            self.say(f"topic entities: {names}")
        for warning in event.get("warnings") or []:
            self.say(f"warning: {warning}", "yellow")
        self._doing = "searching evidence"

    def _on_evidence(self, event: Mapping[str, Any]) -> None:
        new, facts = event.get("new_facts") or [], event.get("facts", 0)
        self.say(
            f"evidence at K = {event.get('k')}: {facts} facts, {len(new)} of them new "
            f"({event.get('milliseconds', 0):,.0f} ms)",
            "blue",
        )
        self._doing = ""

    def _on_started(self, event: Mapping[str, Any]) -> None:
        role = str(event.get("role", ""))
        self._speaking[role] += 1
        self._where = _where(event)
        if self._live is None and event.get("draw", 1) == 1:
            samples = f", {event['draws']} samples at once" if "draws" in event else ""
            self.say(f"{_prefix(event)}{_named(role)}{samples} …")

    def _on_said(self, event: Mapping[str, Any]) -> None:
        role = str(event.get("role", ""))
        self._fell_silent(role)
        answer = event.get("answer")
        told = f"answers {answer}" if answer not in (None, "") else "does not know"
        if "draw" in event:
            told = f"{told} in sample {event['draw']} of {event.get('draws', '?')}"
        self._panel(role, f"{told} ({event.get('seconds', 0):.1f} s)", event)

    def _on_decided(self, event: Mapping[str, Any]) -> None:
        self._speaking.pop("decision_maker", None)
        action = str(event.get("action"))
        reason = f": {event['reason']}" if event.get("reason") else ""
        remark = f" ({event['note']})" if event.get("note") else ""
        self.say(
            f"{_prefix(event)}decision: {_ACTIONS.get(action, action)}{remark}{reason}", "yellow"
        )
        self._doing = "searching evidence" if action == "expand" else ""

    def _on_judged(self, event: Mapping[str, Any]) -> None:
        self._speaking.clear()
        confidence = event.get("confidence")
        sure = "" if confidence is None else f", confidence {confidence:g}"
        answer = event.get("choice") or event.get("answer")
        title = f"answers {answer}{sure}" if answer not in (None, "") else "finds no answer"
        role = str(event.get("role") or "judge")
        self._panel(role, title, {"text": event.get("reason") or ""})

    def _on_model(self, event: Mapping[str, Any]) -> None:
        self._doing = str(event.get("text", ""))
        if self._live is None:
            self.say(self._doing)

    def _on_failed(self, event: Mapping[str, Any]) -> None:
        role = str(event.get("role", ""))
        self._fell_silent(role)
        self.say(f"{_named(role)} failed: {event.get('message', '')}", "red")

    def _fell_silent(self, role: str) -> None:
        self._speaking[role] -= 1
        self._speaking = +self._speaking  # those who speak no more go

    def _panel(self, role: str, title: str, event: Mapping[str, Any]) -> None:
        text = str(event.get("text") or "").strip()
        if self._live is None:
            self.say(f"{_prefix(event)}{_named(role)} {title}")
            for line in text.splitlines():
                self.say(f"    {line}")
            return
        from rich.panel import Panel
        from rich.text import Text

        heading = Text(visible(f"{_prefix(event)}{_named(role)} {title}"), style="bold")
        self._live.console.print(
            Panel(
                Text(visible(text, lines=True)),
                title=heading,
                title_align="left",
                border_style=ROLE_STYLES.get(role, "white"),
            )
        )


def _named(role: str) -> str:
    return "-".join(word.capitalize() for word in role.split("_"))


def _where(event: Mapping[str, Any]) -> str:
    parts = []
    if event.get("round") is not None:
        parts.append(f"round {event['round']}")
    if event.get("k") is not None:
        parts.append(f"K = {event['k']}")
    return ", ".join(parts)


def _prefix(event: Mapping[str, Any]) -> str:
    return f"{where}: " if (where := _where(event)) else ""


def _linked(mention: Mapping[str, Any]) -> str:
    if mention.get("mention") == mention.get("entity"):
        return str(mention.get("entity"))
    return f"{mention.get('entity')} (for '{mention.get('mention')}', {mention.get('score'):g})"
