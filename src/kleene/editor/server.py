"""The language server: what editors ask by the Language Server Protocol, answered by the other modules of this room.

It reads the documents that the editor has open, and one schema that was named when it was started. It writes nothing.
"""

from __future__ import annotations

from typing import Any

from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.workspace import TextDocument

from kleene.editor.documents import SASE, SQL, Document
from kleene.editor.pointing import Kind, completions_at, meaning_at
from kleene.editor.problems import problems_in
from kleene.schema import EventSchema
from kleene.source import Span
from kleene.visible import visible

MOST_TEXT = 1 << 20
"""A longer document is not looked at: it is no query."""
_KINDS = {
    Kind.ATTRIBUTE: types.CompletionItemKind.Field,
    Kind.VARIABLE: types.CompletionItemKind.Variable,
    Kind.KEYWORD: types.CompletionItemKind.Keyword,
}


class QueryServer(LanguageServer):
    """A server of one editor."""

    def __init__(self, version: str, schema: EventSchema | None = None) -> None:
        super().__init__("kleene", version)
        self.schema = schema


def make_server(version: str, schema: EventSchema | None = None) -> QueryServer:
    """The server, which checks, completes and explains queries over events with the attributes of the schema."""
    server = QueryServer(version, schema)
    server.feature(types.TEXT_DOCUMENT_DID_OPEN)(_opened)
    server.feature(types.TEXT_DOCUMENT_DID_CHANGE)(_changed)
    server.feature(types.TEXT_DOCUMENT_DID_CLOSE)(_closed)
    server.feature(types.TEXT_DOCUMENT_COMPLETION, types.CompletionOptions(trigger_characters=["."]))(_completed)
    server.feature(types.TEXT_DOCUMENT_HOVER)(_explained)
    return server


def _opened(server: QueryServer, params: types.DidOpenTextDocumentParams) -> None:
    _publish(server, params.text_document.uri)


def _changed(server: QueryServer, params: types.DidChangeTextDocumentParams) -> None:
    _publish(server, params.text_document.uri)


def _closed(server: QueryServer, params: types.DidCloseTextDocumentParams) -> None:
    _show(server, params.text_document.uri, [])


def _completed(server: QueryServer, params: types.CompletionParams) -> types.CompletionList:
    opened = server.workspace.get_text_document(params.text_document.uri)
    offset = opened.offset_at_position(params.position)
    found = completions_at(_document(opened), offset, server.schema)
    items = [types.CompletionItem(one.word, kind=_KINDS[one.kind], detail=one.detail or None) for one in found]
    return types.CompletionList(is_incomplete=False, items=items)


def _explained(server: QueryServer, params: types.HoverParams) -> types.Hover | None:
    opened = server.workspace.get_text_document(params.text_document.uri)
    found = meaning_at(_document(opened), opened.offset_at_position(params.position), server.schema)
    if found is None:
        return None
    return types.Hover(types.MarkupContent(types.MarkupKind.Markdown, visible(found.text)), _range(opened, found.span))


def _publish(server: QueryServer, uri: str) -> None:
    opened = server.workspace.get_text_document(uri)
    _show(server, uri, [_diagnostic(opened, problem) for problem in problems_in(_document(opened), server.schema)])


def _show(server: QueryServer, uri: str, problems: list[types.Diagnostic]) -> None:
    server.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, problems))


def _diagnostic(opened: TextDocument, problem: Any) -> types.Diagnostic:
    severity = types.DiagnosticSeverity.Warning if problem.is_warning else types.DiagnosticSeverity.Error
    message = visible(problem.message, keep="\n")
    return types.Diagnostic(_range(opened, problem.span), message, severity=severity, source="kleene")


def _document(opened: TextDocument) -> Document:
    is_sql = opened.language_id == SQL or opened.uri.lower().endswith(".sql")
    return Document(opened.source if len(opened.source) <= MOST_TEXT else "", SQL if is_sql else SASE)


def _range(opened: TextDocument, span: Span) -> types.Range:
    return types.Range(_position(opened, span.start), _position(opened, span.end))


def _position(opened: TextDocument, offset: int) -> types.Position:
    """Lines and columns as the protocol counts them: columns in the units that the editor asked for."""
    before = opened.source[:offset]
    line = before.count("\n")
    column = len(before) - (before.rfind("\n") + 1)
    return opened.position_codec.position_to_client_units(opened.lines, types.Position(line, column))
