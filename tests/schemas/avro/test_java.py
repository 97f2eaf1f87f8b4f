"""Avro's Java library, which Spark brings along, prints and compares as the tables of these tests say."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from .pairs import pairs
from .test_printing import ADDRESS, CANONICAL, CUSTOMER
from .test_refusals import BAD_DEFAULTS, REFUSED, one_field

pytestmark = [pytest.mark.java, pytest.mark.long]
LIBRARIES = (
    "avro-1",
    "jackson-core-2",
    "jackson-databind-2",
    "jackson-annotations-2",
    "slf4j-api-",
    "commons-compress-",
)
NOT_IN_JAVA = {"half a surrogate pair", "half a surrogate pair in a key"}  # it prints a question mark


def answers(questions: list[dict[str, Any]]) -> list[dict[str, Any]]:
    pyspark = pytest.importorskip("pyspark")
    if shutil.which("java") is None:
        pytest.skip("Java is missing")
    jars = Path(pyspark.__file__).parent / "jars"
    path = ":".join(str(jar) for jar in jars.glob("*.jar") if jar.name.startswith(LIBRARIES))
    ran = subprocess.run(
        ["java", "-cp", path, str(Path(__file__).with_name("AvroAnswers.java"))],
        input="".join(json.dumps(each) + "\n" for each in questions),
        capture_output=True,
        text=True,
    )
    found = [json.loads(line) for line in ran.stdout.split("\n") if line.startswith("{")]
    assert len(found) == len(questions), ran.stderr
    return found


def test_java_agrees() -> None:
    texts = [(text, canonical) for text, canonical in CANONICAL.values()]
    refused = [text for label, (text, _) in REFUSED.items() if label not in NOT_IN_JAVA]
    refused += [one_field(kind, default=default) for kind, default in BAD_DEFAULTS]
    table = [pair for pair in pairs() if "READER_FIELD_AMBIGUOUS" not in dict(pair.reasons)]
    questions: list[dict[str, Any]] = [{"text": text} for text, _ in texts]
    questions += [{"text": text} for text in refused]
    questions += [{"reader": pair.reader, "writer": pair.writer} for pair in table]
    questions.append({"text": CUSTOMER, "references": [ADDRESS]})

    found = iter(answers(questions))

    for text, canonical in texts:
        assert next(found) == {"canonical": canonical}, text
    for text in refused:
        assert "error" in next(found), text
    for pair in table:
        assert next(found) == {"reasons": [list(reason) for reason in pair.reasons]}, pair.label
    assert next(found)["canonical"].endswith('"fields":[{"name":"home","type":"Address"}]}')
