"""How many cores a standalone cluster has, so that several programs can share it.

In: the address of a master (`spark://host:7077`). Out: cores of its living workers, from the page of the
master. Without `spark.cores.max`, the first program would take all cores of such a cluster, and the next one
would wait for ever. Does not know: which programs there are.
"""

from __future__ import annotations

import json
import urllib.request

PAGE_PORT = 8080
ASK_S_MAX = 3.0
MASTER_PAGE = "spark.barnabas.master.page"  # the URL of the master's page, if its port is another one


def cores_of_cluster(master: str, page: str = "") -> int | None:
    """The cores of all workers; None if the master's page does not answer."""
    host = master.removeprefix("spark://").split(",")[0].rpartition(":")[0]
    url = (page or f"http://{host}:{PAGE_PORT}").rstrip("/")
    try:
        with urllib.request.urlopen(f"{url}/json/", timeout=ASK_S_MAX) as response:
            workers = json.loads(response.read(4 << 20))["workers"]
        cores = sum(int(each["cores"]) for each in workers if each.get("state", "ALIVE") == "ALIVE")
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return cores or None


def share_of(cores: int | None, programs: int, least: int) -> int:
    """Cores for each of several programs that run at once; `least` if the number of cores is not known."""
    return least if cores is None else max(cores // max(programs, 1), 1)
