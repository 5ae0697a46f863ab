"""A chat model that says what a test wrote for each role, and records what it was asked."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from pydantic import Field

from nodes.model_spec import register_chat_model

Line = str | dict[str, Any] | Exception
Script = dict[str, Line | Sequence[Line] | Callable[["Asked"], Line]]


class Asked(dict):
    """One request: `role`, `system`, `user`, `messages`, `parameters`."""

    def __getattr__(self, name: str) -> Any:
        return self[name]


class ScriptedModel(BaseChatModel):
    """Replies by role; a list is used up line by line, its last line stays.

    A line is a text, a dict (sent as JSON), an exception (raised), or a function of the request.
    """

    script: dict[str, Any]
    seconds: float = 0.0
    finish_reason: str = "stop"
    asked: list[Any] = Field(default_factory=list)
    running: int = 0
    most_at_once: int = 0

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def of(self, role: str) -> list[Asked]:
        """Return the requests of a role, in order."""
        return [asked for asked in self.asked if asked.role == role]

    def _line(self, messages: list[BaseMessage], parameters: dict[str, Any]) -> Line:
        role = parameters["response_format"]["json_schema"]["name"]
        asked = Asked(
            role=role,
            system=messages[0].content,
            user=messages[1].content,
            messages=messages,
            parameters=parameters,
        )
        self.asked.append(asked)
        lines = self.script[role]
        if callable(lines):
            return lines(asked)
        if isinstance(lines, list | tuple):
            return lines[min(len(self.of(role)), len(lines)) - 1]
        return lines

    def _result(self, line: Line) -> ChatResult:
        if isinstance(line, Exception):
            raise line
        text = line if isinstance(line, str) else json.dumps(line)
        message = AIMessage(
            content=text,
            usage_metadata={"input_tokens": 100, "output_tokens": 10, "total_tokens": 110},
            response_metadata={"finish_reason": self.finish_reason, "model_name": "scripted"},
        )
        return ChatResult(generations=[ChatGeneration(message=message)])

    def _generate(self, messages, stop=None, run_manager=None, **parameters: Any) -> ChatResult:
        return self._result(self._line(messages, parameters))

    async def _agenerate(
        self, messages, stop=None, run_manager=None, **parameters: Any
    ) -> ChatResult:
        line = self._line(messages, parameters)
        self.running += 1
        self.most_at_once = max(self.most_at_once, self.running)
        try:
            await asyncio.sleep(self.seconds)
        finally:
            self.running -= 1
        return self._result(line)


def scripted(script: Script, **fields: Any) -> tuple[str, ScriptedModel]:
    """Return a model specification and the model behind it."""
    model = ScriptedModel(script=script, **fields)
    return register_chat_model(f"scripted-{id(model)}", model), model
