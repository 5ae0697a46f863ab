"""When two answers are the same text: the normal form that exact match compares.

The tradition is SQuAD's (Rajpurkar et al. 2016): case, punctuation and articles do not count. Where
that rule makes different answers equal, or an answer empty, it is mended here:

- Unicode: NFKC and case-folding; diacritics are kept (`año` is not `ano`), format characters go.
- Punctuation is deleted (`U.S.` is `us`), but `_` and line breaks are blanks, dashes are one sign,
  and what stands before a digit and not after a letter is kept: `1970-09`, `1.5`, `10:30`, `-3 °C`.
  Symbols are kept, and `#` and `%` after a letter or digit: `C++`, `C#` and `C` are three names.
- An article (a, an, the) goes only where another word follows: `A` stays `a`, `Vitamin A` keeps
  it.
- An answer that is one number, with or without `%`, is compared by value: `1.0` is `1`, `1,000` is
  `1000`, `(3.14)` and `−3.14` (U+2212) are numbers; `10` is not `1.0`, `50%` is not `50`. Leading
  zeros make a code, not a number (`007`). Inside longer texts only thousands separators go, so
  that version 3.10 is not 3.1.
- What would become empty keeps what it needs; a blank answer equals nothing, not even another one.
"""

from __future__ import annotations

import re
import unicodedata
from decimal import Context, Decimal
from functools import lru_cache

_NUMBER = re.compile(r"([+-]?)((?:0|[1-9]\d*)(?:\.\d*)?|\.\d+)(e[+-]?\d{1,3})?\s?(%?)")
_THOUSANDS = re.compile(r"(?<![\d.,])[1-9]\d{0,2}(?:,\d{3})+(?!,?\d)")
_ARTICLE = re.compile(r"\b(?:a|an|the)\s+(?=\S)")
_DASHES = frozenset("\u2212\u2043\uff0d")
_FRACTION_SLASH = "\u2044"
_AFTER_WORD = frozenset("#%")
_LONGEST_PLAIN = 40
"""Digits up to which a number is written without an exponent."""


@lru_cache(maxsize=65_536)
def normal_form(text: str) -> str:
    """Return what is compared in place of an answer; '' only for an answer that is blank."""
    folded = _folded(text)
    number = _as_number(folded)
    if number is not None:
        return number
    words = " ".join(_without_punctuation(folded).split())
    return _ARTICLE.sub("", words) or folded or text.strip()


def same_answer(one: str, other: str) -> bool:
    """Return whether two answers have one normal form; a blank answer is the same as nothing."""
    form = normal_form(one)
    return bool(form) and form == normal_form(other)


def _folded(text: str) -> str:
    """Return the text case-folded, compatible characters made one, blanks single."""
    folded = unicodedata.normalize("NFKC", _with_raised_apart(text)).casefold()
    folded = unicodedata.normalize("NFKC", folded)
    return " ".join("".join(map(_plain, folded)).split())


def _with_raised_apart(text: str) -> str:
    """Put a blank between a digit and a raised one or a fraction, so that 10² is not 102."""
    if text.isascii():
        return text
    apart = []
    for before, character in zip(" " + text, text, strict=False):
        raised = before.isdecimal() and unicodedata.category(character) == "No"
        apart.append(f" {character}" if raised else character)
    return "".join(apart)


def _plain(character: str) -> str:
    """Return a dash as `-`, `_` and control characters as a blank, a format character as ''."""
    if character.isascii() and character.isprintable():
        return " " if character == "_" else character
    category = unicodedata.category(character)
    if category == "Pd" or character in _DASHES:
        return "-"
    if character == _FRACTION_SLASH:
        return "/"
    return {"Cc": " ", "Cf": "", "Pc": " "}.get(category, character)


def _as_number(text: str) -> str | None:
    """Return the one way to write a number, or None when the text is not just one number."""
    bare = _THOUSANDS.sub(_without_commas, _stripped(text))
    found = _NUMBER.fullmatch(bare)
    if not found:
        return None
    sign, digits, exponent, percent = found.groups()
    context = Context(prec=max(28, len(digits)))
    value = Decimal(f"{sign}{digits}{exponent or ''}").normalize(context)
    if value == 0:
        return f"0{percent}"
    long = len(value.as_tuple().digits) + abs(value.adjusted()) > _LONGEST_PLAIN
    return f"{value if long else format(value, 'f')}{percent}"


def _stripped(text: str) -> str:
    """Drop the punctuation around a number: brackets, quotes, a full stop at the end."""
    start, end = 0, len(text)
    while start < end and _is_wrapping(text[start]) and text[start] not in "-.":
        start += 1
    while end > start and _is_wrapping(text[end - 1]) and text[end - 1] != "%":
        end -= 1
    return text[start:end]


def _is_wrapping(character: str) -> bool:
    return character.isspace() or unicodedata.category(character) in _PUNCTUATION


def _without_commas(match: re.Match[str]) -> str:
    return match.group().replace(",", "")


_PUNCTUATION = frozenset({"Pc", "Pd", "Pe", "Pf", "Pi", "Po", "Ps", "Sk"})
"""Unicode categories; `Sk` holds accents that stand alone and serve as quotes."""


def _without_punctuation(text: str) -> str:
    text = _THOUSANDS.sub(_without_commas, text)
    kept = []
    for index, character in enumerate(text):
        if unicodedata.category(character) in _PUNCTUATION:
            before = text[index - 1] if index else " "
            after = text[index + 1] if index + 1 < len(text) else " "
            if not _keeps(before, character, after):
                continue
        kept.append(character)
    return "".join(kept)


def _keeps(before: str, mark: str, after: str) -> bool:
    if mark in _AFTER_WORD:
        return before.isalnum()
    if before.isdecimal():
        return after.isdecimal()
    # A sign or a decimal point at the start of a number; in `U-235` it joins a word and goes.
    return mark in "-." and after.isdecimal() and not before.isalnum()
