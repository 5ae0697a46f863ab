"""A server on loopback that speaks the OpenAI API as a test wrote for it, faults included."""

from __future__ import annotations

import contextlib
import json
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

USAGE = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}


@dataclass(frozen=True)
class Reply:
    """What the server does with one request.

    `body` is sent as it is (a dict as JSON); `drop` says where the connection is cut:
    `before` any byte, or in the `middle` of the body.
    """

    body: Any = ""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    delay: float = 0.0
    drop: str = ""
    drip: bool = False


@dataclass
class Asked:
    """One request: path, headers (lower-case names), the parsed body."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]

    @property
    def role(self) -> str | None:
        wanted = self.body.get("response_format") or {}
        return wanted.get("json_schema", {}).get("name")

    @property
    def user(self) -> str:
        return self.body["messages"][1]["content"]


def says(
    content: Any,
    finish_reason: str = "stop",
    usage: dict[str, Any] | None = USAGE,
    *,
    delay: float = 0.0,
    **message: Any,
) -> Reply:
    """Return a completion; a dict as content is written as JSON."""
    text = json.dumps(content) if isinstance(content, dict) else content
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": text, **message},
        "finish_reason": finish_reason,
    }
    body = {
        "id": "c1", "object": "chat.completion", "created": 1, "model": "fake-1",
        "choices": [choice],
    }  # fmt: skip
    if usage is not None:
        body["usage"] = usage
    return Reply(body, delay=delay)


def error(status: int, message: str = "no", *, headers: dict[str, str] | None = None, **rest: Any):
    """Return an error in OpenAI's form."""
    return Reply({"error": {"message": message, **rest}}, status, headers or {})


Line = Reply | Callable[[Asked], Reply]


class FakeOpenAI:
    """The server: `replies` are used up in order, the last one stays; `asked` has all requests."""

    def __init__(self, *replies: Line) -> None:
        self.replies = list(replies)
        self.asked: list[Asked] = []
        self.most_at_once = 0
        self.was_asked = threading.Event()
        self.ended = threading.Event()
        self._running = 0
        self._lock = threading.Lock()
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.fake = self
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    @property
    def spec(self) -> str:
        return f"fake@{self.url}"

    @property
    def connections(self) -> int:
        """How many connections were made."""
        return self._server.accepted

    def next_reply(self, asked: Asked) -> Reply:
        with self._lock:
            self.asked.append(asked)
            self.was_asked.set()
            line = self.replies[min(len(self.asked), len(self.replies)) - 1]
        return line(asked) if callable(line) else line

    @contextlib.contextmanager
    def serving(self) -> Iterator[None]:
        with self._lock:
            self._running += 1
            self.most_at_once = max(self.most_at_once, self._running)
        try:
            yield
        finally:
            with self._lock:
                self._running -= 1

    def close(self) -> None:
        self.ended.set()
        self._server.shutdown()
        self._server.close_connections()
        self._server.server_close()
        self._thread.join()

    def __enter__(self) -> FakeOpenAI:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Server(ThreadingHTTPServer):
    daemon_threads = False
    fake: FakeOpenAI

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.accepted = 0
        self._open: set[socket.socket] = set()

    def process_request(self, request: Any, client_address: Any) -> None:
        self.accepted += 1
        self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._open.discard(request)
        super().shutdown_request(request)

    def close_connections(self) -> None:
        for connection in list(self._open):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """The client hung up, as some tests make it."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    server: _Server

    def do_POST(self) -> None:
        fake = self.server.fake
        sent = self.rfile.read(int(self.headers["content-length"]))
        headers = {name.lower(): value for name, value in self.headers.items()}
        with fake.serving():
            reply = fake.next_reply(Asked(self.path, headers, json.loads(sent)))
            if reply.delay and fake.ended.wait(reply.delay):
                self.close_connection = True
                return
            self._send(reply)

    def _send(self, reply: Reply) -> None:
        if reply.drop == "before":
            self._cut()
            return
        is_text = isinstance(reply.body, str | bytes)
        body = reply.body if is_text else json.dumps(reply.body)
        body = body.encode() if isinstance(body, str) else body
        self.send_response(reply.status)
        names = {"content-type": "application/json", **reply.headers}
        for name, value in names.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        if reply.drop:
            self.wfile.write(body[: len(body) // 2])
            self.wfile.flush()
            self._cut()
        elif reply.drip:
            for byte in body:
                self.wfile.write(bytes([byte]))
                self.wfile.flush()
                if self.server.fake.ended.wait(0.05):
                    return
        else:
            self.wfile.write(body)

    def _cut(self) -> None:
        # A reset, not a polite end.
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True

    def log_message(self, *_: Any) -> None:
        """Keep quiet."""
