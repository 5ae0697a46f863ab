"""Questions and facts as prompt text: short, delimited, with homonyms told apart."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from graph_store.errors import shorten
from graph_store.verbalise import entity_words, relation_words
from nodes.state import (
    Question,
    answered_in_words,
    choice_shown,
    choices_of,
    question_type_of,
)
from prompts import debate_on_graph as texts

NAME_LENGTH = 80


def question_part(state: Question) -> str:
    """Return the question with its choices: the first part of every role's prompt."""
    lines = [texts.QUESTION.format(question=state["question"])]
    if question_type_of(state) == "choice":
        choices = choices_of(state)
        form = texts.CHOICES if answered_in_words(choices) else texts.LABELLED_CHOICES
        rows = (f"- {choice_shown(label, choices)}" for label, _ in choices)
        lines.append(form.format(choices="\n".join(rows)))
    elif question_type_of(state) == "boolean":
        lines.append(texts.BOOLEAN)
    return "\n".join(lines)


def facts_part(evidence: Sequence[dict[str, Any]], token_budget: int) -> str:
    """Return the evidence as a delimited, numbered list; '' when there is none.

    When it is longer than the budget, the facts with the best scores stay, in their order. A
    fact's number is its place in the whole evidence, so that numbers stay true as it grows.
    """
    homonyms = _homonyms(evidence)
    lines = [_fact_line(number, fact, homonyms) for number, fact in enumerate(evidence, 1)]
    kept = _within(lines, [fact["score"] for fact in evidence], token_budget)
    return "\n".join(kept)


def _within(lines: list[str], scores: list[float], budget: int) -> list[str]:
    chosen: set[int] = set()
    spent = 0
    for index in sorted(range(len(lines)), key=lambda i: (-scores[i], i)):
        cost = estimated_tokens(lines[index])
        if spent + cost > budget:
            break
        spent += cost
        chosen.add(index)
    return [line for index, line in enumerate(lines) if index in chosen]


def estimated_tokens(text: str) -> int:
    """Return about how many tokens a text has: a quarter of its ASCII, one for other letters."""
    plain = sum(c.isascii() for c in text)
    return plain // 4 + 1 + (len(text) - plain)


def _fact_line(number: int, fact: dict[str, Any], homonyms: set[str]) -> str:
    relation = fact.get("relation_label") or relation_words(fact["relation"])
    head = _shown(fact["head"], fact.get("head_id"), homonyms)
    tail = _shown(fact["tail"], fact.get("tail_id"), homonyms)
    return f"{number}. {head} {quoted(relation)} {tail} ({fact['confidence']:.2f})"


def _shown(name: str, entity: str | None, homonyms: set[str]) -> str:
    words = quoted(shorten(entity_words(name), NAME_LENGTH))
    return f"{words} [{quoted(entity or name)}]" if name in homonyms else words


def quoted(text: str) -> str:
    """Return graph text on one line and without the marks that delimit blocks."""
    return " ".join(text.split()).replace("<", "‹").replace(">", "›")


def _homonyms(evidence: Sequence[dict[str, Any]]) -> set[str]:
    ids: dict[str, set[str]] = {}
    for fact in evidence:
        ids.setdefault(fact["head"], set()).add(fact.get("head_id", fact["head"]))
        ids.setdefault(fact["tail"], set()).add(fact.get("tail_id", fact["tail"]))
    return {name for name, entities in ids.items() if len(entities) > 1}


_SCRIPTS = (
    (re.compile(r"[\u3040-\u30ff]"), "Japanese (日本語)"),
    (re.compile(r"[\uac00-\ud7af]"), "Korean (한국어)"),
    (re.compile(r"[\u3400-\u9fff]"), "Chinese (中文)"),
    (re.compile(r"[^\W\d_a-zA-Z\u00c0-\u024f]{3}"), "the language of the question"),
)


def language_part(state: Question) -> str:
    """Return the last part of a prompt for questions that are not in Latin letters, else ''.

    The system text asks for the question's language, but a small model forgets that over an
    English prompt unless it stands at the end.
    """
    for script, language in _SCRIPTS:
        if script.search(state["question"]):
            return texts.LANGUAGE.format(language=language)
    return ""
