"""How the tests start a JVM."""

QUICK_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=240m"
"""For JVMs that do little: most of their time goes into compiling their own code, and the first compiler is enough.

With the first compiler alone, the room for its code is a fifth of what is usual: after some hundred queries it would be
cleared, and filled, over and over.
"""
