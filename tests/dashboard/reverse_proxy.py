"""A small reverse proxy: hands everything below a path on to the dashboard and has nothing else."""

from __future__ import annotations

import socket
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_HEAD_END = b"\r\n\r\n"
_NOT_FOUND = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


@contextmanager
def proxied(port: int, prefix: str, *, taken_off: bool) -> Iterator[str]:
    """The origin of a proxy for 127.0.0.1:`port`; with `taken_off` the dashboard never sees the prefix."""

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            _serve(self.request, port, prefix, taken_off=taken_off)

    class Server(socketserver.ThreadingTCPServer):
        allow_reuse_address = True
        daemon_threads = True

    with Server(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join(5)


def _serve(client: socket.socket, port: int, prefix: str, *, taken_off: bool) -> None:
    """One request per connection, so that only its first line has to be understood."""
    head = b""
    while _HEAD_END not in head:
        part = client.recv(65536)
        if not part:
            return
        head += part
    first, rest = head.split(b"\r\n", 1)
    method, path, version = first.split(b" ")
    if not path.startswith(prefix.encode()):
        client.sendall(_NOT_FOUND)
        return
    if taken_off:
        path = b"/" + path.removeprefix(prefix.encode()).removeprefix(b"/")
    if b"upgrade: websocket" not in head.lower():
        rest = b"Connection: close\r\n" + rest.replace(b"Connection: keep-alive\r\n", b"")
    with socket.create_connection(("127.0.0.1", port)) as upstream:
        upstream.sendall(b" ".join((method, path, version)) + b"\r\n" + rest)
        forth = threading.Thread(target=_pipe, args=(client, upstream), daemon=True)
        forth.start()
        _pipe(upstream, client)


def _pipe(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):
        while part := source.recv(65536):
            sink.sendall(part)
    with suppress(OSError):
        sink.shutdown(socket.SHUT_WR)
