"""A browser as far as a login needs one: cookies, redirects across hosts, nothing else."""

from __future__ import annotations

import http.client
import http.cookies
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from tests.dashboard.serving import Answer

_MOST_STEPS = 10


@dataclass
class Browser:
    """Keeps cookies per host and port, as they were set; `steps` are the addresses it was sent to."""

    cookies: dict[str, http.cookies.SimpleCookie] = field(default_factory=dict)
    steps: list[str] = field(default_factory=list)

    def open(self, address: str) -> Answer:
        """Where `address` leads in the end."""
        self.steps = []
        for _ in range(_MOST_STEPS):
            self.steps.append(address)
            answer = self.ask("GET", address)
            if answer.status not in {302, 303, 307}:
                return answer
            parts = urlsplit(address)
            target = answer.headers["location"]
            address = target if "://" in target else f"{parts.scheme}://{parts.netloc}{target}"
        raise AssertionError(f"led in circles: {self.steps}")

    def ask(self, method: str, address: str, **headers: str) -> Answer:
        parts = urlsplit(address)
        jar = self.cookies.setdefault(parts.netloc, http.cookies.SimpleCookie())
        sent = {"Accept": "text/html", **{name.replace("_", "-"): value for name, value in headers.items()}}
        if jar:
            sent["Cookie"] = "; ".join(f"{name}={morsel.value}" for name, morsel in jar.items())
        connection = http.client.HTTPConnection(parts.netloc, timeout=30)
        try:
            connection.request(method, parts.path + (f"?{parts.query}" if parts.query else ""), headers=sent)
            answer = connection.getresponse()
            for line in answer.headers.get_all("Set-Cookie") or []:
                self._keep(jar, line)
            named = {name.lower(): value for name, value in answer.getheaders()}
            return Answer(answer.status, named, answer.read())
        finally:
            connection.close()

    def _keep(self, jar: http.cookies.SimpleCookie, line: str) -> None:
        for name, morsel in http.cookies.SimpleCookie(line).items():
            if morsel["max-age"] == "0":
                jar.pop(name, None)
            else:
                jar[name] = morsel.value
                jar[name].update(morsel)

    def cookie(self, netloc: str, name: str) -> http.cookies.Morsel[str] | None:
        return self.cookies.get(netloc, http.cookies.SimpleCookie()).get(name)
