"""LangSmith's server as far as uploads need it, behind a `requests` session that opens nothing."""

from __future__ import annotations

import json
import threading
import uuid
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

import requests
from requests_toolbelt import MultipartDecoder

TENANT = "11111111-1111-4111-8111-111111111111"
NOW = "2025-01-01T00:00:00+00:00"


class FakeLangSmith(requests.Session):
    """Keeps what is posted; `requests` lists (method, path, body) of everything asked.

    Attributes:
        failing: (method, path) to the status with which it is answered.
        oldest: runs that start before this are dropped without an error, as LangSmith does.
    """

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[tuple[str, str, Any]] = []
        self.datasets: dict[str, dict[str, Any]] = {}
        self.examples: dict[str, dict[str, Any]] = {}
        self.sessions: dict[str, dict[str, Any]] = {}
        self.runs: dict[str, dict[str, Any]] = {}
        self.feedback: dict[str, dict[str, Any]] = {}
        self.failing: dict[tuple[str, str], int] = {}
        self.oldest: datetime | None = None
        self._lock = threading.Lock()

    def request(self, method: str, url: str, **options: Any) -> requests.Response:
        path = urlsplit(url).path
        body = _body(options)
        with self._lock:
            self.asked.append((method, path, body if body is not None else options.get("params")))
            status, answer = self._answer(method, path, body, options.get("params") or {})
        return _response(status, answer, method, url)

    def posted(self, path: str) -> list[Any]:
        """Return the bodies that were posted to a path."""
        return [body for method, where, body in self.asked if (method, where) == ("POST", path)]

    def _answer(self, method: str, path: str, body: Any, params: Any) -> tuple[int, Any]:
        if (method, path) in self.failing:
            return self.failing[method, path], {"detail": "not today"}
        if path.startswith("/runs/") and method == "PATCH":
            self.runs[path.removeprefix("/runs/")].update(body)
            return 200, {}
        if path.endswith("/examples") and method == "POST":
            status, answer = self._add_examples(_whole_examples(path, body))
            return status, {"example_ids": [row["id"] for row in answer], "count": len(answer)}
        handler = {
            ("GET", "/datasets"): lambda: _named(self.datasets, params),
            ("POST", "/datasets"): lambda: self._new(self.datasets, body, created_at=NOW),
            ("GET", "/examples"): lambda: self._page(params),
            ("POST", "/examples/bulk"): lambda: self._add_examples(body),
            ("GET", "/sessions"): lambda: _named(self.sessions, params),
            ("POST", "/sessions"): lambda: self._new(self.sessions, body),
            ("POST", "/runs"): lambda: self._add_runs({"post": [body]}),
            ("POST", "/runs/batch"): lambda: self._add_runs(body),
            ("POST", "/feedback"): lambda: self._add_feedback(body),
        }.get((method, path))
        return (404, {"detail": f"no {method} {path}"}) if handler is None else handler()

    @staticmethod
    def _new(table: dict[str, Any], body: Any, **fields: Any) -> tuple[int, Any]:
        if any(row["name"] == body["name"] for row in table.values()):
            return 409, {"detail": "exists"}
        row = {"id": str(uuid.uuid4()), "tenant_id": TENANT, **body, **fields}
        table[row["id"]] = row
        return 200, row

    def _page(self, params: Any) -> tuple[int, Any]:
        rows = [e for e in self.examples.values() if e["dataset_id"] == str(params["dataset"])]
        return 200, rows[params["offset"] : params["offset"] + params["limit"]]

    def _add_examples(self, body: Any) -> tuple[int, Any]:
        if any(row["id"] in self.examples for row in body):
            return 409, {"detail": "exists"}
        self.examples.update({row["id"]: {**row, "created_at": NOW} for row in body})
        return 200, body

    def _add_runs(self, body: Any) -> tuple[int, Any]:
        for row in body["post"]:
            start = datetime.fromisoformat(row["start_time"]).astimezone(UTC)
            if self.oldest is None or start >= self.oldest:
                self.runs.setdefault(row["id"], row)
        return 202, {}

    def _add_feedback(self, body: Any) -> tuple[int, Any]:
        if body["run_id"] not in self.runs:
            return 404, {"detail": "no such run"}
        if body["id"] in self.feedback:
            return 409, {"detail": "exists"}
        self.feedback[body["id"]] = body
        return 200, body


def _body(options: dict[str, Any]) -> Any:
    """Return what JSON says, or the parts of a multipart body by name."""
    raw = options.get("data")
    kind = (options.get("headers") or {}).get("Content-Type", "")
    if not raw or not kind.startswith("multipart"):
        return json.loads(raw) if raw else None
    parts = {}
    for part in MultipartDecoder(raw, kind).parts:
        name = part.headers[b"Content-Disposition"].decode().split('name="')[1].split('"')[0]
        parts[name] = json.loads(part.content)
    return parts


def _whole_examples(path: str, parts: dict[str, Any]) -> list[dict[str, Any]]:
    dataset = path.split("/")[-2]
    return [
        {
            **fields,
            "id": name,
            "dataset_id": dataset,
            "inputs": parts[f"{name}.inputs"],
            "outputs": parts[f"{name}.outputs"],
        }
        for name, fields in parts.items()
        if "." not in name
    ]


def _named(table: dict[str, Any], params: Any) -> tuple[int, Any]:
    rows = [row for row in table.values() if params.get("name") in (None, row["name"])]
    return 200, rows[: params.get("limit")]


def _response(status: int, answer: Any, method: str, url: str) -> requests.Response:
    response = requests.Response()
    response.status_code = status
    response._content = json.dumps(answer).encode()
    response.request = requests.Request(method, url).prepare()
    response.url = url
    return response
