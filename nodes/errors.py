"""Failures of a language model, as values that a workflow can route on."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nodes.usage import Call


class ModelError(Exception):
    """A model cannot be had or does not answer; one line that names the mend.

    Attributes:
        calls: the calls that were paid for before.
    """

    def __init__(self, message: str, calls: list[Call] | None = None) -> None:
        super().__init__(message)
        self.calls = calls or []


class RequestRefusedError(ModelError):
    """A server does not take this one request (too long, filtered, malformed); others it may."""


class ModelSpecError(ModelError, ValueError):
    """A model specification cannot be read."""


class UnusableAnswerError(ModelError):
    """A model's reply is not of the asked form, also after one repair call.

    Attributes:
        text: the last reply.
    """

    def __init__(self, message: str, text: str = "", calls: list[Call] | None = None) -> None:
        super().__init__(message, calls)
        self.text = text
