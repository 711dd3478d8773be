"""What a call can be told besides its query and its events: four public values that check themselves when made."""

from kleene.options.engine import EngineOptions
from kleene.options.schema import Schema
from kleene.options.spark import SparkOptions
from kleene.options.stream import StreamOptions

__all__ = ["EngineOptions", "Schema", "SparkOptions", "StreamOptions"]
