"""How tests start Java, and what their sessions of Spark do without, so that they cost little."""

from __future__ import annotations

# These programs are over before Java's second compiler pays, and the classes are those of every run: checking
# their bytecode takes a fifth of the start. A Java that no longer knows an option goes on without it.
JAVA = (
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:+IgnoreUnrecognizedVMOptions "
    "-XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
)

# Spark compiles Java for each plan and plans again after each stage. Neither is noticed by a data source, and
# together they are a third of a small query. Programs that tests start in processes of their own do both.
PLAIN_PLANS = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.codegen.wholeStage": "false",
}
