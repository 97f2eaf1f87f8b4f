"""The CSV of reset plans: `--export` prints it, `--from-file` reads it.

    topic,partition,offset               for one group
    group,topic,partition,offset         for several

In: CSV or a plan. Out: the other one. An error names the line that cannot be parsed.
"""

import csv
import io
from collections.abc import Mapping
from pathlib import Path

from barnabas.cli.frame.parsing import ToolError
from barnabas.client.core.topology import TopicPartition

Plan = dict[str, dict[TopicPartition, int]]
PLAN_BYTES_MAX = 64 << 20


def csv_text(plan: Mapping[str, Mapping[TopicPartition, int]], *, with_groups: bool) -> str:
    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\n")
    for group, offsets in plan.items():
        for topic_partition, offset in sorted(offsets.items()):
            writer.writerow([*([group] if with_groups else []), *topic_partition, offset])
    return written.getvalue()


def read_plan(path: str, group: str | None) -> Plan:
    """Read a plan from a file; a line without a group belongs to `group`."""
    try:
        if Path(path).stat().st_size > PLAN_BYTES_MAX:
            raise ToolError(f"{path} is larger than {PLAN_BYTES_MAX} bytes, the limit of a reset plan")
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise ToolError(f"Unable to read file {path}") from None
    plan: Plan = {}
    for number, row in enumerate(csv.reader(io.StringIO(text)), start=1):
        if not row:
            continue
        cells = [cell.strip() for cell in row]
        if len(cells) == 3 and group is not None:
            cells = [group, *cells]
        try:
            name, topic, partition, offset = cells
            plan.setdefault(name, {})[TopicPartition(topic, int(partition))] = int(offset)
        except ValueError:
            expected = "topic,partition,offset" if group is not None else "group,topic,partition,offset"
            shown = ",".join(row)
            raise ToolError(f"{path}, line {number}: {shown!r} is not {expected}") from None
    return plan
