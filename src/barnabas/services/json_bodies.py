"""JSON of strangers, read with bounds.

In: the bytes of a body. Out: its value, or ApiError (400 for a text that is no JSON, 422 for no text at all).
Refused: bytes that are not UTF-8, nesting beyond `DEPTH_MAX`, a name twice in one object, NaN and infinities,
numbers too large for a double or with thousands of digits, halves of surrogate pairs. Whole numbers keep all
digits. Large bodies are parsed in a thread. Does not know: what a body means.
"""

from __future__ import annotations

import asyncio
import json
import math
import re
from typing import Any, NoReturn

from starlette.requests import Request

from barnabas.services.errors import ApiError

DEPTH_MAX = 200
ON_LOOP_BYTES_MAX = 64 * 1024  # about half a millisecond
# A text without its closing quote matches up to the end, so that the search takes linear time.
TOKENS = re.compile(rb'"(?:[^"\\]|\\.)*+(?:"|\\?\Z)|[\[\]{}]', re.DOTALL)
SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
NO_BODY = "the request has no body: send a JSON document"


async def read_json(request: Request, *, depth_max: int = DEPTH_MAX) -> Any:
    """The JSON body of a request. The frame bounds its size."""
    data = await request.body()
    if len(data) <= ON_LOOP_BYTES_MAX:
        return parse_json(data, depth_max=depth_max)
    return await asyncio.to_thread(parse_json, data, depth_max=depth_max)


async def read_object(request: Request, *, depth_max: int = DEPTH_MAX) -> dict[str, Any]:
    """The body, which must be a JSON object."""
    value = await read_json(request, depth_max=depth_max)
    if not isinstance(value, dict):
        raise bad_json(f"expected a JSON object, not {kind_of(value)}")
    return value


def parse_json(data: bytes, *, depth_max: int = DEPTH_MAX) -> Any:
    if not data.strip():
        raise ApiError(422, 422, NO_BODY)
    if data.count(b"[") + data.count(b"{") > depth_max:
        check_depth(data, depth_max)
    try:
        value = DECODER.decode(data.decode("utf-8-sig" if data[:1] == b"\xef" else "utf-8"))
        if SURROGATE.search(data):
            json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise bad_json("a text has half of a surrogate pair, which no UTF-8 has") from None
    except UnicodeDecodeError as error:
        raise bad_json(f"byte {error.start} is not UTF-8") from None
    except json.JSONDecodeError as error:
        raise bad_json(f"{error.msg} (line {error.lineno}, column {error.colno})") from None
    except RecursionError:
        raise too_deep(depth_max) from None
    except ValueError as error:
        text = str(error)
        raise bad_json("a number has too many digits" if "digits" in text else text) from None
    return value


def check_depth(data: bytes, depth_max: int) -> None:
    depth = 0
    for token in TOKENS.finditer(data):
        match data[token.start()]:
            case 0x5B | 0x7B:
                depth += 1
                if depth > depth_max:
                    raise too_deep(depth_max)
            case 0x5D | 0x7D:
                depth -= 1


def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1) if len(names) < 1000 else "a name"
        raise ValueError(f"{twice[:100]!r} is twice in one object")
    return found


def finite(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError(f"{text[:40]} is too large for a number")
    return value


def no_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is no JSON")


def bad_json(problem: str) -> ApiError:
    return ApiError(400, 400, f"the body is no valid JSON: {problem}")


def too_deep(depth_max: int) -> ApiError:
    return bad_json(f"it is nested more than {depth_max} levels deep")


def kind_of(value: object) -> str:
    """The name of a value's type in the words of JSON."""
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return "a string"
        case list():
            return "an array"
        case _:
            return "an object"


DECODER = json.JSONDecoder(object_pairs_hook=unique, parse_float=finite, parse_constant=no_constant)
