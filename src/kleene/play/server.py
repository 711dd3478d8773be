"""The page and its questions over HTTP, for this machine alone.

Whoever knows the token in the address may ask; it is new each time. The name that the request was made to is checked
as well, so that no page of another name can be led here (DNS rebinding), and nothing is offered to other origins.
"""

from __future__ import annotations

import hmac
import json
import secrets
from collections.abc import Sequence
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from typing import Any

from kleene.errors import KleeneError
from kleene.markup.themes import variables_css
from kleene.play.asking import LANGUAGES, described, read_ask
from kleene.play.tables import Offered
from kleene.play.worker import Worker

ADDRESS = "127.0.0.1"
MOST_BYTES = 100_000
"""Of a question."""
_KINDS = {
    "": ("page.html", "text/html; charset=utf-8"),
    "page.js": ("page.js", "text/javascript; charset=utf-8"),
    "page.css": ("page.css", "text/css; charset=utf-8"),
}
_JSON = "application/json"
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class Playground(ThreadingHTTPServer):
    """The server; `address` is what to open. `start` is a query to begin with, by its language."""

    daemon_threads = True
    allow_reuse_address = False

    def __init__(
        self, tables: Sequence[Offered], worker: Worker, port: int = 0, start: tuple[str, str] | None = None
    ) -> None:
        super().__init__((ADDRESS, port), _Handler)
        self.worker, self.token = worker, secrets.token_urlsafe(24)
        self.hosts = {f"{name}:{self.server_port}" for name in (ADDRESS, "localhost")}
        self.contents = {
            "tables": [described(offered) for offered in tables],
            "languages": LANGUAGES,
            "start": None if start is None else {"language": start[0], "query": start[1]},
        }

    @property
    def address(self) -> str:
        return f"http://{ADDRESS}:{self.server_port}/{self.token}/"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A page that was closed while it was answered is nothing to tell of."""


class _Handler(BaseHTTPRequestHandler):
    server: Playground
    server_version, sys_version = "Kleene", ""
    timeout = 20  # seconds that a request may keep a thread waiting for its bytes

    def do_GET(self) -> None:
        name = self._checked_name()
        if name is None:
            return
        if name == "tables":
            self._answer(HTTPStatus.OK, json.dumps(self.server.contents).encode(), _JSON)
        elif name in _KINDS:
            file, kind = _KINDS[name]
            text = files("kleene.play").joinpath(file).read_text(encoding="utf-8")
            self._answer(HTTPStatus.OK, ((variables_css() if name == "page.css" else "") + text).encode(), kind)
        else:
            self._refuse(HTTPStatus.NOT_FOUND, "there is no such page")

    def do_POST(self) -> None:
        name = self._checked_name()
        if name is None:
            return
        if name != "ask":
            self._refuse(HTTPStatus.NOT_FOUND, "there is nothing to ask there")
            return
        body = self._body()
        if body is None:
            return
        try:
            given = json.loads(body)
            ask, page, number = read_ask(given), str(given.get("page", ""))[:64], int(given.get("number", 0))
        except KleeneError as error:
            self._refuse(HTTPStatus.BAD_REQUEST, error.message)
            return
        except (ValueError, TypeError, RecursionError, OverflowError):
            self._refuse(HTTPStatus.BAD_REQUEST, "the question is not JSON of the kind that the page sends")
            return
        found = self.server.worker.answer(page, number, ask)
        self._answer(HTTPStatus.OK, json.dumps(found | {"number": number}).encode(), _JSON)

    def _checked_name(self) -> str | None:
        """What is asked for, behind the token; None where the request was refused."""
        if self.headers.get("Host", "") not in self.server.hosts:
            self._refuse(HTTPStatus.FORBIDDEN, "the playground is for this machine alone")
            return None
        origin = self.headers.get("Origin")
        if origin is not None and origin not in {f"http://{host}" for host in self.server.hosts}:
            self._refuse(HTTPStatus.FORBIDDEN, "the playground answers to no other page")
            return None
        token, _, name = self.path.split("?", 1)[0].removeprefix("/").partition("/")
        if not hmac.compare_digest(token.encode(), self.server.token.encode()):
            self._refuse(HTTPStatus.FORBIDDEN, "the address has no token, or a wrong one; kleene play prints it")
            return None
        return name

    def _body(self) -> bytes | None:
        """The body of a question; None where it was refused."""
        if self.headers.get_content_type() != _JSON:
            self._refuse(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "a question is JSON")
            return None
        length = self.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdigit()):
            self._refuse(HTTPStatus.LENGTH_REQUIRED, "a question says how long it is")
            return None
        if len(length) > 12 or int(length) > MOST_BYTES:
            self._refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"a question has {MOST_BYTES:,} bytes at most")
            return None
        return self.rfile.read(int(length))

    def _refuse(self, status: HTTPStatus, why: str) -> None:
        self.close_connection = True  # what else was sent is not read
        self._answer(status, json.dumps({"refused": why}).encode(), _JSON)

    def _answer(self, status: HTTPStatus, body: bytes, kind: str) -> None:
        self.send_response(status)
        for name, value in {**_HEADERS, "Content-Type": kind, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Addresses hold the token, and belong in no log."""
