"""Requests of tools to services over HTTP.

In: the address of a service, a path, a body. Out: the JSON of the response; ToolError says what is wrong.
Blocking. Does not know: which service it is.
"""

from __future__ import annotations

import json
from base64 import b64encode
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from barnabas.cli.frame.parsing import ToolError

TIMEOUT_S = 30.0
RESPONSE_BYTES_MAX = 256 * 1024 * 1024


def ask_service(
    url: str,
    path: str,
    title: str,
    *,
    method: str = "GET",
    body: Any = None,
    hint: str = "",
    user: str = "",
) -> Any:
    """Send a request and return its JSON, None for an empty response. `title` names the service in errors,
    `hint` says how to start it, `user` is `name:password` for basic authentication."""
    data = None if body is None else json.dumps(body).encode()
    headers = {"Content-Type": "application/json"}
    if user:
        headers["Authorization"] = f"Basic {b64encode(user.encode()).decode()}"
    request = Request(url + path, data, headers, method=method)
    try:
        with urlopen(request, timeout=TIMEOUT_S) as response:
            found = response.read(RESPONSE_BYTES_MAX)
        return json.loads(found) if found else None
    except HTTPError as error:
        raise ToolError(f"{url}: {message_of(error)}") from None
    except (URLError, OSError) as error:
        reason = error.reason if isinstance(error, URLError) else error
        raise ToolError(f"{url} cannot be reached: {reason}{hint}") from None
    except ValueError:
        raise ToolError(f"{url} is no {title}: its response is no JSON") from None


def message_of(error: HTTPError) -> str:
    try:
        return str(json.loads(error.read())["message"])
    except (ValueError, KeyError, TypeError):
        return f"HTTP {error.code}"
