"""Settings of Spark sessions in tests: most queries see a few rows, and run once.

Sessions of several folders share one Java machine. Its class path stays as the first of them made it, so all
sessions begin with the same jars.
"""

from typing import Any

from barnabas.engine.session import session
from barnabas.engine.spark_settings import SparkSettings
from barnabas.spark import jars
from barnabas.spark.jars import JarError
from barnabas.testing import spark_connector

# Optimized machine code pays for millions of rows. Without it five batches through all zones took 112 instead
# of 150 s of processor time. The first compiler's default cache of 48 MB is too small for Spark: the machine
# then drops compiled methods and compiles them again. A cache that is large enough, and a heap that need not
# grow, took a fifth off three tests of zones (114 to 90 s of processor time).
JAVA_OPTIONS = (
    "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m"
    " -XX:+UseSerialGC -Xms1g -Xmn400m -XX:MetaspaceSize=512m"
)
STARTS_FAST = {
    "spark.driver.extraJavaOptions": JAVA_OPTIONS,
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}

JAR_SETS = ("delta", "sqlite", "postgresql", "mysql")


def connector_jars() -> list[str]:
    """Spark's own connector, where it can be fetched: it stands beside ours in many tests."""
    return [] if spark_connector.available() else [str(path) for path in spark_connector.jars()]


def all_jars() -> list[str]:
    try:
        return [*connector_jars(), *(str(path) for path in jars.jars(*JAR_SETS))]
    except JarError:  # tests of pipelines are skipped then
        return connector_jars()


def sql_session() -> Any:
    """The session of tests of SQL, with the jars for tables of a lake where they are here."""
    sets = () if jars.missing(("delta",)) else ("delta",)
    return session(SparkSettings("local[2]", settings=STARTS_FAST), sets=sets)
