"""connect new: writes the module of a connector and its test, which passes.

In: a name, a kind. Out: two files; files that are there are never replaced. Does not know: workers.
"""

import argparse
import keyword
from pathlib import Path

from barnabas.cli.frame.output import Output
from barnabas.cli.frame.parsing import ToolError

SOURCE = '''"""A source of Connect: connector.class={name}:{name} names it."""

from barnabas.connect.config import ConfigDef
from barnabas.connect.data import INT64, STRING, struct
from barnabas.connect.plugins import source

CONFIG = ConfigDef().define("rows", "INT", 3, "HIGH", "How many rows there are.")


@source(topic="{name}", key="n", schema=struct(n=INT64, text=STRING), config=CONFIG)
def {name}(context, offset):
    """Yield rows, each with the offset that is reached with it; a restart gets the last stored one."""
    first = (offset or {{"next": 0}})["next"]
    for n in range(first, context.settings.integer("rows")):
        yield {{"n": n, "text": f"row {{n}}"}}, {{"next": n + 1}}
'''
SOURCE_TEST = """from {name} import {name}

from barnabas.connect.tasks.kit import Kit


def test_rows_come_and_a_restart_continues():
    kit = Kit({name}, {{}}, offsets=[({{"source": "test"}}, {{"next": 1}})])
    assert [row.value for row in kit.poll(10)] == [{{"n": 1, "text": "row 1"}}, {{"n": 2, "text": "row 2"}}]
    assert kit.offsets.read([{{"source": "test"}}]) == [{{"next": 3}}]
"""
SINK = '''"""A sink of Connect: connector.class={name}:{name} names it."""

from pathlib import Path

from barnabas.connect.config import ConfigDef
from barnabas.connect.plugins import Connector, SinkTask


class {name}Task(SinkTask):
    """Appends values to a file; `flush` makes them durable before their offsets are committed."""

    def start(self, context):
        super().start(context)
        self._file = Path(context.settings.text("file")).open("a")

    def put(self, records):
        for row in records.rows():
            self._file.write(f"{{row.value}}\\n")

    def flush(self, offsets):
        self._file.flush()

    def stop(self):
        self._file.close()


class {name}(Connector):
    KIND = "sink"
    CONFIG = ConfigDef().define("file", "STRING", importance="HIGH", doc="Where values are written.")
    task = {name}Task
'''
SINK_TEST = """from {name} import {name}

from barnabas.connect.tasks.kit import Kit


def test_values_are_written(tmp_path):
    file = tmp_path / "values.txt"
    Kit({name}, {{"file": str(file)}}).put("topic", ["one", "two"])
    assert file.read_text() == "one\\ntwo\\n"
"""
SPARK_SOURCE = '''"""A source of Connect on Spark: connector.class={name}:{name} names it."""

from barnabas.connect.config import ConfigDef
from barnabas.connect.plugins import frame_source

CONFIG = ConfigDef().define("rows", "INT", 1000, "HIGH", "How many rows there are.")
SLICE_ROWS = 400  # bounded: offsets are stored after each slice


@frame_source(topic="{name}", key="n", config=CONFIG)
def {name}(spark, context, offset):
    """Return the next rows as a DataFrame and the offset that is reached with them; None: nothing new."""
    first = (offset or {{"next": 0}})["next"]
    end = min(first + SLICE_ROWS, context.settings.integer("rows"))
    if first >= end:
        return None
    return spark.range(first, end).selectExpr("id AS n", "concat('row ', id) AS text"), {{"next": end}}
'''
SPARK_SOURCE_TEST = """from {name} import {name}

from barnabas.connect.jobs.spark_kit import SparkKit
from barnabas.engine.session import close, session
from barnabas.engine.spark_settings import SparkSettings


def test_slices_follow_each_other():
    spark = session(SparkSettings("local[1]"), sets=())
    try:
        kit = SparkKit({name}, {{"rows": "500"}}, spark)
        assert len(kit.plan()) == 400
        assert kit.plan()[-1] == {{"key": 499, "value": {{"n": 499, "text": "row 499"}}}}
        assert kit.plan() == []
    finally:
        close(spark)
"""
SPARK_SINK = '''"""A sink of Connect on Spark: connector.class={name}:{name} names it."""

from barnabas.connect.config import ConfigDef
from barnabas.connect.plugins import sink

CONFIG = ConfigDef().define("folder", "STRING", importance="HIGH", doc="Where files are written.")


@sink(config=CONFIG)
def {name}(frame, batch):
    """Write the rows of a batch. A batch that comes again has the same number, and replaces its files."""
    folder = f"{{batch.config['folder']}}/{{batch.topic}}/{{batch.number:020}}"
    frame.select("partition", "offset", "key", "value").write.mode("overwrite").json(folder)
'''
SPARK_SINK_TEST = """from {name} import {name}

from barnabas.connect.jobs.spark_kit import SparkKit
from barnabas.engine.session import close, session
from barnabas.engine.spark_settings import SparkSettings


def test_a_batch_that_comes_again_replaces_its_files(tmp_path):
    spark = session(SparkSettings("local[1]"), sets=())
    try:
        kit = SparkKit({name}, {{"folder": str(tmp_path)}}, spark)
        for _ in range(2):
            kit.write("topic", [{{"n": 1}}, {{"n": 2}}], number=0)
        assert sorted(row.value.n for row in spark.read.json(f"{{tmp_path}}/topic/*").collect()) == [1, 2]
    finally:
        close(spark)
"""
TEMPLATES = {
    "source": (SOURCE, SOURCE_TEST),
    "sink": (SINK, SINK_TEST),
    "spark-source": (SPARK_SOURCE, SPARK_SOURCE_TEST),
    "spark-sink": (SPARK_SINK, SPARK_SINK_TEST),
}


def new(options: argparse.Namespace, out: Output) -> int:
    name, folder = options.name, Path(options.folder)
    if not name.isidentifier() or keyword.iskeyword(name):
        raise ToolError(f"{name!r} is no name of a Python module: use letters, digits and underscores")
    files = dict(
        zip((folder / f"{name}.py", folder / f"test_{name}.py"), TEMPLATES[options.kind], strict=True)
    )
    for path in files:
        if path.exists():
            raise ToolError(f"{path} is there already: choose another name or --folder")
    folder.mkdir(parents=True, exist_ok=True)
    for path, text in files.items():
        path.write_text(text.format(name=name))
        out.line(f"wrote {path}")
    out.line(f"test it:   cd {folder} && python -m pytest test_{name}.py")
    out.line(f"run it:    plugin.path={folder.resolve()} in worker.properties, connector.class={name}:{name}")
    return 0
