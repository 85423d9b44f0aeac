"""HTTP: who it is, how much of a body is read, JSON."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import Any

from radabound_fast import __version__
from radabound_fast._extras import needs
from radabound_fast.holdout import Holdout
from radabound_fast.service import contract, state
from radabound_fast.service.answering import (
    Answering,
    Call,
    Reply,
    failed,
    fault,
    refused,
    unavailable,
)
from radabound_fast.service.counts import MEDIA_TYPE, Counts
from radabound_fast.service.page import page
from radabound_fast.service.tokens import Team, Tokens
from radabound_fast.store.served import Log

with needs("serve"):
    from starlette.applications import Starlette
    from starlette.requests import ClientDisconnect, Request
    from starlette.responses import Response
    from starlette.routing import Route

MAX_BODY = 2**24  # octets
# calls in one transaction, and how long they are gathered at most
_TOGETHER = 64
_GATHER_SECONDS = 0.001
# octets of bodies that are held at once, in units of the largest body
_BODIES = 8
_JSON = "application/json"
# what a page may do: nothing but show itself
_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; form-action 'none'; base-uri 'none'; "
    "frame-ancestors 'none'"
)


class Refusal(Exception):
    """What is told instead of an answer."""

    def __init__(self, status: int, kind: str, message: str, **headers: str) -> None:
        super().__init__(message)
        self.reply = fault(status, kind, message, "refused")
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


class Service:
    """The application, and what it counts.

    Parameters
    ----------
    holdout : Holdout
        Opened from a database; it belongs to this from now on.
    tokens : Tokens
    max_body : int
        Octets of a body.
    """

    def __init__(
        self,
        holdout: Holdout,
        tokens: Tokens,
        *,
        max_body: int = MAX_BODY,
    ) -> None:
        self._counts = Counts()
        self._answering, self._tokens = Answering(holdout, self._counts.commit), tokens
        self._waiting: list[Call] = []
        self._max_body = max_body
        self._held = 0  # octets of bodies
        post = ["POST"]
        self.app = Starlette(
            routes=[
                Route("/query", self._endpoint(partial(self._query, many=False)), methods=post),
                Route("/query_many", self._endpoint(partial(self._query, many=True)), methods=post),
                Route("/state", self._endpoint(self._state)),
                Route("/report", self._endpoint(self._report)),
                Route("/", self._endpoint(self._page)),
                Route("/metrics", self._endpoint(self._metrics)),
                Route("/health", self._health),
                Route("/openapi.json", self._openapi),
            ],
            exception_handlers={404: self._not_found, 405: self._not_found},
            lifespan=self._lifespan,
        )
        # which would send a client, and its token, where the Host header says
        self.app.router.redirect_slashes = False

    @contextlib.asynccontextmanager
    async def _lifespan(self, _: Starlette) -> AsyncIterator[None]:
        yield
        self._answering.close()

    # ---- every endpoint ------------------------------------------------------------------------

    def _endpoint(
        self, work: Callable[[Request, Team], Awaitable[Response]]
    ) -> Callable[[Request], Awaitable[Response]]:
        async def endpoint(request: Request) -> Response:
            try:
                response = await work(request, self._team(request))
            except Refusal as refusal:
                response = _response(refusal.reply)
                response.headers.update(refusal.headers)
            except Exception as error:
                response = _response(failed(error))
            self._counts.response(response.status_code)
            return response

        return endpoint

    def _team(self, request: Request) -> Team:
        """Whose token came with it."""
        kind, _, given = request.headers.get("authorization", "").partition(" ")
        team = None
        if kind.lower() == "bearer":
            team = self._tokens.team_of(given.strip().encode())
        # as browsers have it, which would send it along with another site's POST as well
        elif kind.lower() == "basic" and request.method in ("GET", "HEAD"):
            with contextlib.suppress(ValueError):  # no base64
                name, _, token = base64.b64decode(given, validate=True).partition(b":")
                team = self._tokens.team_of(token)
                if team is not None and team.name.encode() != name:
                    team = None
        if team is None:
            ask = "Basic" if request.url.path == "/" else "Bearer"
            raise Refusal(
                401, "PermissionError", "a token of the service must come as Authorization: Bearer",
                www_authenticate=f'{ask} realm="radabound"',
            )  # fmt: skip
        return team

    async def _body(self, request: Request) -> bytes:
        """Read it within the limits of length."""
        said = request.headers.get("content-length", "0")
        length = int(said) if said.isascii() and said.isdecimal() and len(said) < 20 else 0
        parts: list[bytes] = []
        held = 0
        try:
            if length > self._max_body:
                raise self._too_large()
            async for part in request.stream():
                held += len(part)
                self._held += len(part)
                if held > self._max_body:
                    raise self._too_large()
                if self._held > _BODIES * self._max_body:
                    raise Refusal(
                        503, "RuntimeError", "nothing was counted: too many bodies at once"
                    )
                parts.append(part)
        except ClientDisconnect:
            raise Refusal(400, "ConnectionError", "the client went away") from None
        finally:
            self._held -= held
        return b"".join(parts)

    def _too_large(self) -> Refusal:
        reason = f"a body must have at most {self._max_body:,} octets"
        # the rest is read and forgotten, or a client that sends all of it would not hear of this
        return Refusal(413, "ValueError", reason)

    # ---- asking ----------------------------------------------------------------------------------

    async def _query(self, request: Request, team: Team, *, many: bool) -> Response:
        began = time.perf_counter()
        idempotency = request.headers.get("idempotency-key")
        if idempotency is not None and not 1 <= len(idempotency) <= 200:
            raise Refusal(400, "ValueError", "an Idempotency-Key must have 1 to 200 characters")
        body = await self._body(request)
        loop = asyncio.get_running_loop()
        replied: asyncio.Future[Reply] = loop.create_future()
        self._held += len(body)
        try:
            if not self._waiting:
                loop.call_soon(self._gather, 0, loop.time() + _GATHER_SECONDS)
            self._waiting.append(Call(team, body, many, idempotency, replied))
            reply = await replied
        finally:
            self._held -= len(body)
        self._counts.call(team.name, reply.outcome, time.perf_counter() - began)
        response = _response(reply)
        if reply.status == 429:
            response.headers["retry-after"] = str(86400 - int(time.time()) % 86400)
        return response

    def _gather(self, n_before: int, until: float) -> None:
        """Answer what waits, once the loop has read all sockets and no more of it came."""
        n, loop = len(self._waiting), asyncio.get_running_loop()
        if n_before < n < _TOGETHER and loop.time() < until:
            loop.call_soon(self._gather, n, until)
        else:
            self._answer_waiting()

    def _answer_waiting(self) -> None:
        calls, self._waiting = self._waiting[:_TOGETHER], self._waiting[_TOGETHER:]
        if self._waiting:
            asyncio.get_running_loop().call_soon(self._answer_waiting)
        self._answering.answer(calls)
        for call in calls:
            if not call.waits.done():  # else its client went away
                call.waits.set_result(call.reply)

    # ---- looking ---------------------------------------------------------------------------------

    def _look(self, work: Callable[[Any], Any]) -> Any:
        """Between two transactions; a Reply if there is nothing to tell."""
        return self._told(partial(self._answering.look, work))

    @staticmethod
    def _told(work: Callable[[], Any]) -> Any:
        try:
            return work()
        except (TypeError, ValueError) as error:
            return refused(error)
        except (OSError, RuntimeError) as error:  # as where a file of it is gone
            return unavailable(error)

    async def _state(self, _: Request, team: Team) -> Response:
        found = self._look(partial(state.of, self._answering.holdout, team))
        if isinstance(found, dict):
            found |= {"version": __version__, "max_body": self._max_body}
        return _json(found)

    async def _report(self, _: Request, team: Team) -> Response:
        holdout = self._answering.holdout
        found = self._look(partial(state.asked_by, holdout, team))
        if not isinstance(found, Reply):  # what takes long is done beside: queries go on
            found = await asyncio.to_thread(self._told, partial(state.report_of, holdout, *found))
        return _json(found)

    async def _page(self, _: Request, team: Team) -> Response:
        shown = self._look(partial(state.shown, self._answering.holdout, team))
        if isinstance(shown, Reply):
            return _response(shown)
        return Response(
            page(team, shown),
            media_type="text/html",
            headers={
                "content-security-policy": _POLICY,
                "cache-control": "no-store",
                "referrer-policy": "no-referrer",
                "x-content-type-options": "nosniff",
            },
        )

    async def _metrics(self, _: Request, team: Team) -> Response:
        if not team.is_owner:
            raise Refusal(403, "PermissionError", "the metrics are for the owner")
        found = self._look(self._progress)
        if isinstance(found, Reply):
            return _response(found)
        return Response(self._counts.text(*found), headers={"content-type": MEDIA_TYPE})

    # ---- for anybody -----------------------------------------------------------------------------

    async def _health(self, _: Request) -> Response:
        found = self._look(self._progress)
        if isinstance(found, Reply):
            return _response(fault(503, "RuntimeError", "the database does not answer", "failed"))
        return _json({"status": "ok"})

    def _progress(self, log: Log) -> tuple[int, bool]:
        """Answers in all, and the halt, once guard and log have been read."""
        log.n_answers("", 0)
        return self._answering.holdout.n_queries, self._answering.holdout.halted

    async def _openapi(self, _: Request) -> Response:
        return _json(contract.OPENAPI)

    async def _not_found(self, request: Request, error: Exception) -> Response:
        status = getattr(error, "status_code", 404)
        what = f"{request.method} {request.url.path[:100]}"
        return _response(fault(status, "LookupError", f"there is no {what}", "refused"))


def _response(reply: Reply) -> Response:
    headers = {"retry-after": "1"} if reply.status == 503 else None
    return Response(reply.body, reply.status, headers, _JSON)


def _json(found: Any) -> Response:
    if isinstance(found, Reply):
        return _response(found)
    return Response(json.dumps(found), media_type=_JSON)
