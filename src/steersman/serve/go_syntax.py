"""What Go's JSON decoder says of text that is no JSON. Only such text is ever read here, once it has been refused.

Source of the facts: Go's `encoding/json` (scanner.go), which sigs.k8s.io/json follows.
"""

from __future__ import annotations

from typing import Final

SPACE: Final = " \t\r\n"
ENDED: Final = "unexpected end of JSON input"
_WORDS: Final = {"t": "true", "f": "false", "n": "null"}
_HEX: Final = "0123456789abcdefABCDEF"


class _Fault(Exception):
    """Where the text stops being JSON, and in what."""


def syntax_error(data: bytes) -> str:
    """The words for the first fault of the text; those of a text that ends too soon when none is found."""
    scan = _Scan(data.decode("utf-8", "replace"))
    try:
        scan.document()
    except _Fault as fault:
        return str(fault)
    return ENDED


class _Scan:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def peek(self) -> str:
        if self.at >= len(self.text):
            raise _Fault(ENDED)
        return self.text[self.at]

    def inside(self) -> str:
        """The next character of a word or number; the end of the text reads as a space there."""
        return self.text[self.at] if self.at < len(self.text) else " "

    def token(self) -> str:
        """The next character that is no space; it is not taken."""
        while self.at < len(self.text) and self.text[self.at] in SPACE:
            self.at += 1
        return self.peek()

    def refuse(self, where: str) -> _Fault:
        return _Fault(f"invalid character {_quoted(self.inside())} {where}")

    def document(self) -> None:
        """One value, without recursion: what is open is on a stack."""
        open_: list[str] = []
        while True:
            char = self.token()
            if char in "{[":
                self.at += 1
                closing = self.token()
                if closing == ("}" if char == "{" else "]"):
                    self.at += 1
                else:
                    open_.append(char)
                    if char == "{":
                        self.key("looking for beginning of object key string")
                    continue
            else:
                self.scalar(char)
            while open_:
                closing = self.token()
                if closing == ("}" if open_[-1] == "{" else "]"):
                    self.at += 1
                    open_.pop()
                    continue
                if closing != ",":
                    raise self.refuse("after object key:value pair" if open_[-1] == "{" else "after array element")
                self.at += 1
                if open_[-1] == "{":
                    self.key("looking for beginning of object key string")
                break
            if not open_:
                break
        while self.at < len(self.text):
            if self.text[self.at] not in SPACE:
                raise self.refuse("after top-level value")
            self.at += 1

    def key(self, where: str) -> None:
        if self.token() != '"':
            raise self.refuse(where)
        self.string()
        if self.token() != ":":
            raise self.refuse("after object key")
        self.at += 1

    def scalar(self, char: str) -> None:
        if char == '"':
            self.string()
        elif char in _WORDS:
            self.word(_WORDS[char])
        elif char == "-" or (char.isascii() and char.isdigit()):
            self.number()
        else:
            raise self.refuse("looking for beginning of value")

    def string(self) -> None:
        self.at += 1
        while (char := self.peek()) != '"':
            if char < " ":
                raise self.refuse("in string literal")
            self.at += 1
            if char == "\\":
                self.escape()
        self.at += 1

    def escape(self) -> None:
        char = self.inside()
        if char == "u":
            for _ in range(4):
                self.at += 1
                if self.inside() not in _HEX:
                    raise self.refuse("in \\u hexadecimal character escape")
        elif char not in 'bfnrt\\/"':
            raise self.refuse("in string escape code")
        self.at += 1

    def word(self, word: str) -> None:
        for index, wanted in enumerate(word):
            if self.inside() != wanted:
                raise self.refuse(f"in literal {word} (expecting {_quoted(word[index])})")
            self.at += 1

    def digits(self, where: str) -> None:
        if not _is_digit(self.inside()):
            raise self.refuse(where)
        while self.at < len(self.text) and _is_digit(self.text[self.at]):
            self.at += 1

    def number(self) -> None:
        if self.peek() == "-":
            self.at += 1
        if self.inside() == "0":
            self.at += 1
        else:
            self.digits("in numeric literal")
        if self.at < len(self.text) and self.text[self.at] == ".":
            self.at += 1
            self.digits("after decimal point in numeric literal")
        if self.at < len(self.text) and self.text[self.at] in "eE":
            self.at += 1
            if self.inside() in "+-":
                self.at += 1
            self.digits("in exponent of numeric literal")


def _is_digit(char: str) -> bool:
    return char.isascii() and char.isdigit()


def _quoted(char: str) -> str:
    """A character as these messages show it."""
    special = {"'": "'\\''", '"': "'\"'", "\n": "'\\n'", "\t": "'\\t'", "\r": "'\\r'", "\\": "'\\\\'"}
    if char in special:
        return special[char]
    return f"'{char}'" if char.isprintable() else f"'\\x{ord(char):02x}'" if char.isascii() else f"'\\u{ord(char):04x}'"
