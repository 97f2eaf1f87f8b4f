"""Settings of Spark sessions in tests: most queries see a few rows, and run once."""

# Code that is made for each query, and compiled well, pays for millions of rows. Without it five batches
# through all zones took 112 instead of 150 s of processor time.
STARTS_FAST = {
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
