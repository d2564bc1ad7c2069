"""The words of an expression."""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

from steersman.api.cel.faults import CompileError
from steersman.api.cel.values import Uint

MAX_SOURCE: Final = 100_000
"""Code points of an expression (cel-go's limit)."""
RESERVED: Final = frozenset(
    [
        "as",
        "break",
        "const",
        "continue",
        "else",
        "for",
        "function",
        "if",
        "import",
        "let",
        "loop",
        "package",
        "namespace",
        "return",
        "var",
        "void",
        "while",
    ]
)
"""Words that are no names."""
LITERALS: Final = {"true": True, "false": False, "null": None}
_WORDS: Final = re.compile(
    r"(?P<space>[ \t\r\n\f]+|//[^\n]*)"
    r"|(?P<text>(?:[rR][bB]|[bB][rR]|[rRbB])?(?:'''(?:.|\n)*?(?<!\\)'''|\"\"\"(?:.|\n)*?(?<!\\)\"\"\"))"
    r"|(?P<string>[bB]?(?:'(?:[^'\\\n\r]|\\.)*'|\"(?:[^\"\\\n\r]|\\.)*\"))"
    r"|(?P<raw>(?:[rR][bB]?|[bB][rR])(?:'[^'\n\r]*'|\"[^\"\n\r]*\"))"
    r"|(?P<float>\d+\.\d+(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+|\.\d+(?:[eE][+-]?\d+)?)"
    r"|(?P<int>(?:0x[0-9a-fA-F]+|\d+)[uU]?)"
    r"|(?P<name>[A-Za-z_][A-Za-z0-9_]*)"
    r"|(?P<quoted>`[A-Za-z0-9_.\-/ ]+`)"
    r"|(?P<op>&&|\|\||<=|>=|==|!=|[-+*/%<>!?:.,()\[\]{}])"
)
_ESCAPE: Final = re.compile(
    r"\\(?:x([0-9a-fA-F]{2})|X([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-3][0-7]{2})|(.))", re.S
)
_SIMPLE: Final = {
    "a": "\a",
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
    **{char: char for char in "\\?\"'`"},
}


class Word(NamedTuple):
    """A word: kind is op | name | quoted | const | end."""

    kind: str
    text: str
    at: int
    value: Any = None


def words(source: str) -> list[Word]:
    """The words of a text, an "end" behind them. Raises `CompileError`."""
    if len(source) > MAX_SOURCE:
        told = f"expression code point size exceeds limit: size: {len(source)}, limit {MAX_SOURCE}"
        raise CompileError("", [(-1, told)])
    out: list[Word] = []
    at = 0
    while at < len(source):
        match = _WORDS.match(source, at)
        if match is None:
            shown = source[at : at + 1]
            raise CompileError(source, [(at, f"Syntax error: token recognition error at: '{shown}'")])
        kind, text = match.lastgroup, match[0]
        try:
            if kind == "op" or kind == "quoted":
                out.append(Word(kind, text, at))
            elif kind == "name":
                out.append(_name(text, at))
            elif kind != "space":
                out.append(Word("const", text, at, _literal(str(kind), text)))
        except ValueError as problem:
            raise CompileError(source, [(at, str(problem))]) from None
        at = match.end()
    out.append(Word("end", "<EOF>", len(source)))
    return out


def _name(text: str, at: int) -> Word:
    if text in LITERALS:
        return Word("const", text, at, LITERALS[text])
    return Word("op" if text == "in" else "name", text, at)


def _literal(kind: str, text: str) -> Any:
    if kind == "float":
        return float(text)
    if kind == "int":
        return _whole(text)
    start = min(text.find(quote) for quote in "'\"" if quote in text)
    prefix, body = text[:start].lower(), text[start:]
    triple = 3 if kind == "text" else 1
    body = body[triple:-triple]
    if "b" in prefix:
        return _bytes(body) if "r" not in prefix else body.encode()
    return body if "r" in prefix else _ESCAPE.sub(_unescaped, body)


def _whole(text: str) -> Any:
    if len(text) > 20:
        raise ValueError("invalid uint literal" if text[-1] in "uU" else "invalid int literal")
    digits = text.rstrip("uU")
    value = int(digits, 16) if digits.startswith("0x") else int(digits)
    if digits != text:
        if value >= 1 << 64:
            raise ValueError("invalid uint literal")
        return Uint(value)
    return value  # beyond the range only as -9223372036854775808, which the parser sees


def _unescaped(match: re.Match[str]) -> str:
    code = match[1] or match[2] or match[3] or match[4]
    if code:
        number = int(code, 16)
        if number > 0x10FFFF or 0xD800 <= number < 0xE000:
            raise ValueError("invalid unicode code point")
        return chr(number)
    if match[5]:
        return chr(int(match[5], 8))
    if match[6] not in _SIMPLE:
        raise ValueError(f"Syntax error: token recognition error at: '\\{match[6]}'")
    return _SIMPLE[match[6]]


def _bytes(body: str) -> bytes:
    out = bytearray()
    at = 0
    for match in _ESCAPE.finditer(body):
        out += body[at : match.start()].encode()
        code = match[1] or match[2]
        if match[3] or match[4]:
            raise ValueError("unicode escapes are not allowed in bytes")
        out += bytes([int(code, 16)]) if code else bytes([int(match[5], 8)]) if match[5] else _unescaped(match).encode()
        at = match.end()
    return bytes(out + body[at:].encode())
