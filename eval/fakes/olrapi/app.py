"""The plugin's routes: who may call, how the body is parsed, which handler answers."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Any

from fakes.olrapi import bodies, paths, search, vault_moves, vault_routes
from fakes.olrapi.dialects import Dialect
from fakes.olrapi.http1 import Answer, Request
from fakes.olrapi.race import Race
from fakes.olrapi.replies import Crash, NoAnswer, Refusal, canned, finish, send_json
from fakes.olrapi.store import Store
from fakes.olrapi.vault_routes import NOT_FOUND, Call

Handler = Callable[[Call], Awaitable[None]]
CERTIFICATE = "/obsidian-local-rest-api.crt"
OPEN_PATHS = ("/", CERTIFICATE, "/openapi.yaml")
_VAULT = re.compile(r"/vault/(.*?)/?", re.IGNORECASE | re.DOTALL)
_SEARCH = re.compile(r"/search/?", re.IGNORECASE)
OBSIDIAN_VERSION = "1.13.1"


class App:
    """One vault behind one key."""

    def __init__(self, root: str, dialect: Dialect, key: str, race: Race) -> None:
        self.root = root
        self.dialect = dialect
        self.key = key
        self.race = race

    async def answer(
        self, request: Request, cold: bool = False, ignore_case: bool = False, phantom: bool = False,
        key: str | None = None,
    ) -> Answer:
        """The answer to a request, its effect done. Raises NoAnswer where the plugin falls silent.

        key: the key that counts for this request, where it is not the server's.
        """
        answer = Answer(headers={"x-powered-by": "Express", "access-control-allow-origin": "*"})
        if request.method == "OPTIONS":
            return self._preflight(request, answer)
        allowed = request.header("authorization") == f"Bearer {self.key if key is None else key}"
        store = Store(self.root, cold, ignore_case)
        call = Call(request, answer, store, self.dialect, self.race, phantom=phantom)
        try:
            await self._dispatch(call, allowed)
        except Refusal as refusal:
            canned(answer, refusal)
        except Crash as crash:
            if self.dialect.hangs_on_errors:
                raise NoAnswer from crash
            canned(answer, Refusal(500, detail=str(crash)))
        finish(answer, request)
        return answer

    def _preflight(self, request: Request, answer: Answer) -> Answer:
        answer.status = 204
        answer.headers["access-control-allow-methods"] = self.dialect.methods
        answer.headers["vary"] = "Access-Control-Request-Headers"
        if wanted := request.header("access-control-request-headers"):
            answer.headers["access-control-allow-headers"] = wanted
        answer.headers["content-length"] = "0"
        return answer

    async def _dispatch(self, call: Call, allowed: bool) -> None:
        """Authorization, then the body, then the route."""
        path = call.request.path
        if not allowed and path not in OPEN_PATHS:
            name = self.dialect.name
            raise Refusal(
                code=40101,
                text=f"Authorization required.  Find your API Key in the '{name}' section of your Obsidian settings.",
            )
        call.body = bodies.read(call.request, self.dialect)
        handler = self._handler(call.request)
        if handler is None:
            if path == "/" and call.request.method in ("GET", "HEAD"):
                send_json(call.answer, self._status(allowed))
                return
            raise NOT_FOUND
        await handler(call)

    def _handler(self, request: Request) -> Handler | None:
        """The handler of a method and path; None when no route takes them. Raises Refusal for a broken escape."""
        if _SEARCH.fullmatch(request.path) and request.method == "POST":
            return search.by_jsonlogic
        match = _VAULT.fullmatch(request.path)
        if match is None:
            return None
        try:
            paths.decode(match[1])
        except ValueError as error:
            raise Refusal(500, detail=f"Failed to decode param '{match[1]}'") from error
        method = "GET" if request.method == "HEAD" else request.method
        if (method == "MOVE" and not self.dialect.moves) or (method == "COPY" and not self.dialect.copies):
            return None
        return HANDLERS.get(method)

    def _status(self, allowed: bool) -> dict[str, Any]:
        """The answer of GET /."""
        dialect = self.dialect
        status: dict[str, Any] = {
            "status": "OK",
            "manifest": {
                "id": "obsidian-local-rest-api", "name": dialect.name, "version": dialect.version,
                "minAppVersion": dialect.minimum_app, "description": dialect.description,
                "author": "Adam Coddington", "authorUrl": dialect.author_url, "isDesktopOnly": True,
            },
            "versions": {"obsidian": OBSIDIAN_VERSION, "self": dialect.version},
            "service": "Obsidian Local REST API",
            "authenticated": allowed,
        }
        return {**status, "apiExtensions": []} if allowed else status


HANDLERS: dict[str, Handler] = {
    "GET": vault_routes.get, "PUT": vault_routes.put, "POST": vault_routes.post, "DELETE": vault_routes.delete,
    "MOVE": vault_moves.move, "COPY": vault_moves.copy, "PATCH": vault_moves.patch,
}
