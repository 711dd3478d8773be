"""Tables and a port to a playground that is open until it is stopped."""

from __future__ import annotations

import webbrowser
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from kleene.errors import UnsupportedError
from kleene.play.server import ADDRESS, Playground
from kleene.play.tables import Offered
from kleene.play.worker import MOST_SECONDS, Worker


@contextmanager
def playground(
    tables: Sequence[Offered],
    port: int = 0,
    start: tuple[str, str] | None = None,
    most_seconds: float = MOST_SECONDS,
) -> Iterator[Playground]:
    """A playground that can be served; port 0 is any that is free."""
    worker = Worker(tables, most_seconds)
    try:
        server = Playground(tables, worker, port, start)
    except OSError as error:
        raise UnsupportedError(
            f"the playground cannot listen on port {port} of {ADDRESS}: {error.strerror or error}",
            hint="Leave --port out: a free one is taken.",
        ) from None
    try:
        worker.start()
        yield server
    finally:
        server.server_close()
        worker.close()


def serve(
    tables: Sequence[Offered],
    say: Callable[[str], None],
    port: int = 0,
    start: tuple[str, str] | None = None,
    opens: bool = True,
) -> None:
    """Serves the page until it is interrupted; `say` is told its address."""
    with playground(tables, port, start) as server:
        say(server.address)
        if opens:
            webbrowser.open(server.address)
        server.serve_forever(poll_interval=0.2)
