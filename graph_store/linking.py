"""Entity linking: from words to entities, without touching ids.

Names and mentions are compared by *keys*: Unicode-normalised, case-folded, `_` as a blank, camel
case split, diacritics dropped. A store keeps an index of keys; everything else is here, so that
every backend links alike.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from graph_store.errors import UnknownEntityError
from graph_store.protocol import Candidate, NameHit
from graph_store.stopwords import STOPWORDS

if TYPE_CHECKING:
    from graph_store.protocol import GraphStore

MAX_KEY = 200
"""Names longer than this are indexed by their first characters."""

MAX_MENTION_TOKENS = 8
MAX_MENTION_CJK = 16
"""Where words have no blanks between them, every character is a token."""

MAX_SIMILAR_SPANS = 400
"""How many stretches of a question without a known name are compared by trigrams."""

FEW_TRIGRAM_HITS = 5
"""With fewer trigram hits (short words have few trigrams), names that begin alike are added."""

TRIGRAM_POOL = 60
"""How many trigram hits are re-scored by edit similarity."""

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_BLANKS = re.compile(r"[\s_\x00]+")
_OUTER = "\"'`“”‘’«»「」.,;:!?¿¡"
_CJK = r"\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
_CJK_CHARACTER = re.compile(f"[{_CJK}]")
_PLAIN = str.maketrans({"ł": "l", "ø": "o", "đ": "d", "ð": "d", "æ": "ae", "œ": "oe", "ı": "i"})
_PART_OF_LETTER = (7, 8, 9)
"""Combining classes of nukta, kana voicing and virama: without them it is another word."""

_TOKEN = re.compile(rf"[{_CJK}]|[^\W{_CJK}_]+(?:['’.&+#-]*[^\W{_CJK}_]+)*[+#]*")


def name_key(text: str) -> str:
    """Return the main key of a name: NFKC, case-folded, `_` and runs of blanks as one blank."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return _BLANKS.sub(" ", folded).strip()[:MAX_KEY]


def name_keys(text: str) -> tuple[str, ...]:
    """Return all keys under which a name is found, the main key first."""
    main = name_key(text)
    camel = name_key(_CAMEL.sub(" ", text[: MAX_KEY * 2]))
    keys = [main, camel]
    keys += [_without_diacritics(key) for key in (main, camel)]
    bare = main.strip(_OUTER + " ")
    keys.append(bare)
    keys.append(_BLANKS.sub(" ", main.replace("-", " ")).strip())
    return tuple(dict.fromkeys(key for key in keys if key))


def link_mention(store: GraphStore, mention: str, top: int = 10) -> list[Candidate]:
    """Return the entities that a mention may mean, best first.

    Order of trust: the very name or id (1.0), the same but for case (0.97), the same after
    normalisation (0.95), an alias (0.93, 0.91 folded), trigram neighbours scored by edit
    similarity (below 0.9). Ties: name, id.
    """
    wanted = mention.strip()
    keys = name_keys(wanted)
    if not keys or top < 1:
        return []
    best: dict[str, Candidate] = {}
    for hits in store.by_name_keys(keys).values():
        for hit in hits:
            _keep(best, _scored_match(hit, wanted))
    if len(best) < top:
        for hit in store.by_trigram(keys[0], TRIGRAM_POOL):
            if hit.entity not in best or best[hit.entity].how == "trigram":
                _keep(best, _scored_neighbour(hit, keys[0]))
    ranked = sorted(best.values(), key=lambda c: (-c.score, c.entity != wanted, c.name, c.entity))
    return ranked[:top]


def _keep(best: dict[str, Candidate], candidate: Candidate) -> None:
    known = best.get(candidate.entity)
    if known is None or candidate.score > known.score:
        best[candidate.entity] = candidate


def _scored_match(hit: NameHit, wanted: str) -> Candidate:
    if wanted in (hit.label, hit.entity):
        score, how = (0.93, "alias") if hit.is_alias else (1.0, "exact")
    elif hit.label.casefold() == wanted.casefold():
        score, how = (0.92, "alias") if hit.is_alias else (0.97, "case-folded")
    elif max(len(hit.label), len(wanted)) > MAX_KEY and not _same_beyond_key(hit.label, wanted):
        score, how = 0.89, "trigram"
    else:
        score, how = (0.91, "alias") if hit.is_alias else (0.95, "normalised")
    return Candidate(hit.entity, hit.name, score, how)


def _same_beyond_key(label: str, wanted: str) -> bool:
    ends = [name_keys(text[-MAX_KEY:]) for text in (label.rstrip(), wanted)]
    return not set(ends[0]).isdisjoint(ends[1])


def _scored_neighbour(hit: NameHit, key: str) -> Candidate:
    from rapidfuzz import fuzz

    label = name_key(hit.label)
    whole = fuzz.ratio(key, label)
    tokens = fuzz.token_sort_ratio(key, label)
    # A part counts only when it is most of the whole: else every short name fits every long one.
    mostly = 2 * min(len(key), len(label)) >= max(len(key), len(label))
    part = 0.9 * fuzz.partial_ratio(key, label) if mostly else 0.0
    return Candidate(hit.entity, hit.name, round(max(whole, tokens, part) * 0.0089, 4), "trigram")


def _without_diacritics(text: str) -> str:
    if text.isascii():
        return text
    decomposed = unicodedata.normalize("NFKD", text)
    kept = (c for c in decomposed if unicodedata.combining(c) in (0, *_PART_OF_LETTER))
    return unicodedata.normalize("NFKC", "".join(kept)).translate(_PLAIN)


@dataclass(frozen=True, slots=True)
class Mention:
    """A stretch of a question that names entities.

    Attributes:
        text: the words as they stand in the question.
        start: offset of its first character.
        candidates: what it may mean, best first; more than one at the top score is ambiguous.
    """

    text: str
    start: int
    candidates: tuple[Candidate, ...]

    @property
    def best(self) -> tuple[Candidate, ...]:
        """The candidates that share the top score and so cannot be told apart by name."""
        top = self.candidates[0].score
        return tuple(c for c in self.candidates if c.score == top)

    @property
    def ambiguous(self) -> bool:
        """Whether several entities fit equally well."""
        return len(self.best) > 1


@dataclass(frozen=True, slots=True)
class _Span:
    start: int
    end: int
    tokens: int
    key: str


def find_mentions(
    store: GraphStore, question: str, *, limit: int = 3, min_trigram_score: float = 0.8
) -> list[Mention]:
    """Find the entities that a question names: longest match first, then trigram similarity.

    Stop words alone are no mention. When more than `limit` names are found, those with more
    words are kept first, then those with fewer facts (the rarer name says more); what is kept
    comes in the order of the question.
    """
    spans = _spans(question)
    found = store.by_name_keys(list(dict.fromkeys(span.key for span in spans)))
    taken: list[tuple[_Span, list[Candidate]]] = []
    covered = bytearray(len(question))
    for span in sorted(spans, key=lambda s: (-s.tokens, s.start, -s.end)):
        hits = found.get(span.key)
        if hits and not any(covered[span.start : span.end]):
            covered[span.start : span.end] = b"\x01" * (span.end - span.start)
            taken.append((span, _ranked(hits, question[span.start : span.end])))
    if not taken:
        taken = _similar_spans(store, question, spans, min_trigram_score)
    if len(taken) > limit:
        taken.sort(key=lambda item: _weight(store, *item))
        taken = taken[:limit]
    return [
        Mention(question[span.start : span.end], span.start, tuple(candidates))
        for span, candidates in sorted(taken, key=lambda item: item[0].start)
    ]


def _weight(
    store: GraphStore, span: _Span, candidates: Sequence[Candidate]
) -> tuple[int, int, int]:
    degree = store.degree(candidates[0].entity, at_most=10_000)
    return (-span.tokens, degree or 10_001, span.start)


def _ranked(hits: Iterable[NameHit], wanted: str) -> list[Candidate]:
    best: dict[str, Candidate] = {}
    for hit in hits:
        _keep(best, _scored_match(hit, wanted))
    return sorted(best.values(), key=lambda c: (-c.score, c.name, c.entity))


def _spans(question: str) -> list[_Span]:
    tokens = [(m.start(), m.end()) for m in _TOKEN.finditer(question)]
    spans: dict[tuple[int, int, str], _Span] = {}
    for first in range(len(tokens)):
        cjk = _CJK_CHARACTER.match(question, tokens[first][0])
        longest = MAX_MENTION_CJK if cjk else MAX_MENTION_TOKENS
        for last in range(first, min(first + longest, len(tokens))):
            start, end = _bracketed(question, tokens[first][0], tokens[last][1])
            words = [question[a:b] for a, b in tokens[first : last + 1]]
            if all(word.casefold() in STOPWORDS for word in words):
                continue
            for key in name_keys(question[start:end]):
                spans.setdefault((start, end, key), _Span(start, end, last - first + 1, key))
    return list(spans.values())


def _bracketed(question: str, start: int, end: int) -> tuple[int, int]:
    """Take in the other bracket of one inside the span, as in `O'Neil (actor)`, `(No) Reply`."""
    inside = question[start:end]
    opened = inside.count("(") - inside.count(")")
    if opened == 1 and question[end : end + 1] == ")":
        end += 1
    elif opened == -1 and question[start - 1 : start] == "(":
        start -= 1
    return start, end


def _overlap(a: _Span, b: _Span) -> bool:
    return a.start < b.end and b.start < a.end


def _similar_spans(
    store: GraphStore, question: str, spans: Sequence[_Span], least: float
) -> list[tuple[_Span, list[Candidate]]]:
    scored: list[tuple[float, _Span, list[Candidate]]] = []
    distinct = {(s.start, s.end): s for s in reversed(spans) if s.tokens <= 4 and len(s.key) > 3}
    for span in sorted(distinct.values(), key=lambda s: s.start)[:MAX_SIMILAR_SPANS]:
        candidates = [
            candidate
            for candidate in link_mention(store, question[span.start : span.end], top=5)
            if candidate.score >= least
        ]
        if candidates:
            scored.append((candidates[0].score, span, candidates))
    taken: list[tuple[_Span, list[Candidate]]] = []
    for _, span, candidates in sorted(scored, key=lambda s: (-s[0], -s[1].tokens, s[1].start)):
        if not any(_overlap(span, other) for other, _ in taken):
            taken.append((span, candidates))
    return taken


MEANINGS_LISTED = 200
"""So many entities of one name are told apart; an id is found before any of them."""

RESOLVED = 0.9
"""A name resolves without a question when its candidates score at least this (no trigrams)."""


def resolve_entity(store: GraphStore, text: str) -> list[Candidate]:
    """Return what an entity's id, name or alias means; more than one candidate is ambiguous.

    Raises:
        UnknownEntityError: nothing is called so; with the nearest names.
    """
    candidates = link_mention(store, text, top=MEANINGS_LISTED)
    if not candidates or candidates[0].score < RESOLVED:
        raise UnknownEntityError(text, [c.name for c in candidates[:5]])
    by_id = [c for c in candidates if c.entity == text.strip()]
    return by_id[:1] or [c for c in candidates if c.score == candidates[0].score]
