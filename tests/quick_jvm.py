"""How the tests start a JVM."""

QUICK_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""For JVMs that do little: most of their time goes into compiling their own code, and the first compiler is enough."""
