"""What a job on Spark DataFrames can be told."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

from kleene.errors import UnsupportedError, shown
from kleene.options.checks import checked_choice, checked_count, checked_flag

LAYOUTS = ("auto", "shuffled", "presorted", "ranges", "in place", "files")
MOST_RANGES = 4096


@dataclass(frozen=True, slots=True)
class SparkOptions:
    """How the events of a Spark DataFrame come to the tasks.

    >>> SparkOptions("ranges", ranges=4)
    SparkOptions(layout='ranges', ranges=4, range_size=None, pushdown=True)
    >>> SparkOptions("presorted", ranges=4)
    Traceback (most recent call last):
    ...
    kleene.errors.UnsupportedError: ranges is for layout='ranges', but layout='presorted' was given
    Write: kleene.SparkOptions('ranges', ranges=4); or leave ranges out.

    layout: "auto" shuffles events by key. Where that pays, it cuts the events of heavy keys, or all events where there
        is no key, into ranges that are matched apart (RIP 2013). "shuffled" never cuts. "ranges" always cuts, and a
        query that cannot be cut is an error. "presorted" says that the events of a key stand together in one Spark
        partition, in order: nothing is shuffled or sorted. "in place" says that the files of the input follow one
        another in time: they are matched where they lie. "files" says that the DataFrame is nothing but Parquet files
        that do: tasks read them with Arrow, as those of a `kleene.scan`. Matching checks what the last three say.
    ranges: with "ranges", how many ranges each key is cut into.
    range_size: with "auto" or "ranges", about how many events a range has.
    pushdown: whether Spark leaves out events that the query cannot use before they travel.
    """

    layout: str = "auto"
    _: KW_ONLY
    ranges: int | None = None
    range_size: int | None = None
    pushdown: bool = True

    def __post_init__(self) -> None:
        checked_choice("layout", self.layout, LAYOUTS)
        checked_flag("pushdown", self.pushdown)
        if self.ranges is not None:
            object.__setattr__(self, "ranges", _checked_ranges(self.ranges))
            if self.layout != "ranges":
                raise UnsupportedError(
                    f"ranges is for layout='ranges', but layout='{self.layout}' was given",
                    hint=f"Write: kleene.SparkOptions('ranges', ranges={self.ranges}); or leave ranges out.",
                )
        if self.range_size is not None:
            size = checked_count("range_size", self.range_size, "number of events")
            object.__setattr__(self, "range_size", size)
            if self.layout not in ("auto", "ranges"):
                raise UnsupportedError(
                    f"range_size is for ranges that are cut, but layout='{self.layout}' was given",
                    hint="Leave one of them out.",
                )
            if self.ranges is not None:
                raise UnsupportedError(
                    "ranges and range_size cannot both be given: each says how large a range is",
                    hint="Give only one of them.",
                )

    @property
    def is_presorted(self) -> bool:
        return self.layout == "presorted"

    @property
    def is_in_place(self) -> bool:
        return self.layout == "in place"

    @property
    def may_cut(self) -> bool:
        return self.layout in ("auto", "ranges")

    @property
    def must_cut(self) -> bool:
        return self.layout == "ranges"

    @property
    def is_for_tables(self) -> bool:
        """Whether it says anything that a stream has no use for."""
        return self.layout != "auto" or self.range_size is not None


def _checked_ranges(given: object) -> int:
    """How many ranges; the words of other layouts are no numbers."""
    is_count = isinstance(given, int) and not isinstance(given, bool) and 1 <= given <= MOST_RANGES
    if not is_count:
        raise UnsupportedError(f"ranges is a number from 1 to {MOST_RANGES:,}, but {shown(given)} was given")
    assert isinstance(given, int)
    return given


def spark_options(given: SparkOptions | None) -> SparkOptions | None:
    """The options that the argument `spark` says; None is not given."""
    if given is None or isinstance(given, SparkOptions):
        return given
    raise UnsupportedError(
        f"spark is a kleene.SparkOptions, but {shown(given)} was given",
        hint="Write: spark=kleene.SparkOptions('ranges', ranges=4).",
    )
