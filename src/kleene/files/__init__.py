"""Files of events and of matches: Parquet, CSV and JSON lines, read and written one way, in process and on Spark."""

from kleene.files.found import EventFiles, FileKind, Form, endings_of, file_kind, find_files, output_kind
from kleene.files.reading import read_arrow
from kleene.files.replacing import check_replaceable, replaced_file, replaced_folder, write_text
from kleene.files.times import checked_zone
from kleene.files.writing import write_arrow, write_rows

__all__ = [
    "EventFiles",
    "FileKind",
    "Form",
    "check_replaceable",
    "checked_zone",
    "endings_of",
    "file_kind",
    "find_files",
    "output_kind",
    "read_arrow",
    "replaced_file",
    "replaced_folder",
    "write_arrow",
    "write_rows",
    "write_text",
]
