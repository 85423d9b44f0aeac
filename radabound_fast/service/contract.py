"""The OpenAPI description of the service: the reply to `GET /openapi.json`."""

from __future__ import annotations

from typing import Any

from radabound_fast import __version__
from radabound_fast.service.wire import FORMS, GAINS, MEDIA_TYPE, SCORES
from radabound_fast.service.wire import __doc__ as _WIRE

_NUMBER = {"type": ["number", "null"], "description": "null: the guard has none"}
_COUNT = {"type": "integer", "minimum": 0}


def _list(of: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": of}


def _object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


_GAIN = {"type": "number", "description": "gain over the baseline, if a DeclaredSearch has one"}
_ANSWER = _object(
    **dict.fromkeys(SCORES, _NUMBER),
    number=_COUNT | {"description": "number of this answer, counted over all teams"},
    key={"description": "which model it is, under a DeclaredSearch"},
    rerun=_COUNT,
    **dict.fromkeys(GAINS, _GAIN),
)
_VERDICT = _object(
    passed={"type": "boolean"},
    verdict={"type": "string", "enum": ["pass", "fail", "better", "worse", "neither"]},
    number=_COUNT | {"description": "number of the candidate, counted over all teams"},
    n_passes=_COUNT,
    compared_with={"type": ["integer", "null"], "description": "a candidate, 0: the baseline"},
    value={"type": "number", "description": "rounded, where the gate releases it"},
)
_VERDICTS = _object(verdicts=_list(_VERDICT), halted={"type": "boolean"}, n_answered=_COUNT)
_ANSWERS = _object(
    **{f"{name}s": _list(_NUMBER) for name in SCORES},
    numbers=_list(_COUNT),
    halted={"type": "boolean", "description": "the row after them was withheld"},
    n_answered=_COUNT,
    keys=_list({}),
    reruns=_list(_COUNT),
    **{f"{name}s": _list(_GAIN) for name in GAINS},
)
_ERROR = _object(
    error=_object(
        type={"type": "string", "description": "the exception in Python"},
        message={"type": "string"},
        n_answered=_COUNT,
        limit={"type": "string", "description": "which limit the call exceeds"},
        left=_COUNT | {"description": "how much of that is left"},
    )
)
_WHY = {
    400: "these are not predictions for the holdout; nothing has changed",
    401: "no token of the service",
    403: "queries have ended, or the key is another team's",
    410: "the holdout is spent: this query is withheld, and so is every later one",
    413: "the call is too large",
    415: "the body is compressed",
    422: "an earlier call had this Idempotency-Key and another body",
    429: "a limit of the team, or of all; see Retry-After",
    500: "a fault of the service; nothing was counted",
    503: "nothing was counted; ask again with the same Idempotency-Key",
}


def _response(what: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"description": what, "content": {"application/json": {"schema": schema}}}


def _post(what: str, *answers: str) -> dict[str, Any]:
    error = {"$ref": "#/components/schemas/Error"}
    return {
        "summary": what,
        "parameters": [
            {
                "name": "Idempotency-Key",
                "in": "header",
                "description": "a new one for each call, and the same for each of its retries: "
                "a call is counted once under it",
                "schema": {"type": "string", "minLength": 1, "maxLength": 200},
            }
        ],
        "requestBody": {
            "required": True,
            "description": _WIRE,
            "content": {MEDIA_TYPE: {"schema": {"type": "string", "format": "binary"}}},
        },
        "responses": {
            "200": _response(
                "answered: scores, or under a Gate verdicts",
                {"oneOf": [{"$ref": f"#/components/schemas/{one}"} for one in answers]},
            ),
            **{str(status): _response(why, error) for status, why in _WHY.items()},
        },
    }


def _get(what: str, media_type: str = "application/json", open_to_all: bool = False) -> Any:
    responses = {"200": {"description": what, "content": {media_type: {}}}}
    return {"summary": what, "responses": responses} | ({"security": []} if open_to_all else {})


OPENAPI: dict[str, Any] = {
    "openapi": "3.1.0",
    "info": {
        "title": "A guarded holdout",
        "version": __version__,
        "description": "Predictions in, scores with their intervals out, until the holdout is "
        f"spent. Forms of predictions: {', '.join(FORMS)}.",
    },
    "security": [{"token": []}],
    "paths": {
        "/query": {"post": _post("Query one row of predictions", "Answer", "Verdict")},
        "/query_many": {"post": _post("Query rows in order, up to a halt", "Answers", "Verdicts")},
        "/state": {"get": _get("Parameters, what is left, and the counts of your team")},
        "/report": {"get": _get("Report of a DeclaredSearch, or of a competition that has ended")},
        "/end": {"post": _get("Confirm the finalists of a competition; for the owner alone")},
        "/": {"get": _get("The page", "text/html")},
        "/metrics": {"get": _get("Metrics for Prometheus; for the owner alone", "text/plain")},
        "/health": {"get": _get("Whether the database answers", open_to_all=True)},
        "/ready": {"get": _get("Whether a call could be counted now", open_to_all=True)},
        "/openapi.json": {"get": _get("This description", open_to_all=True)},
    },
    "components": {
        "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        "schemas": {
            "Answer": _ANSWER,
            "Answers": _ANSWERS,
            "Verdict": _VERDICT,
            "Verdicts": _VERDICTS,
            "Error": _ERROR,
        },
    },
}
