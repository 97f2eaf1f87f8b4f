"""Settings of Spark sessions in tests: most queries see a few rows, and run once."""

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
