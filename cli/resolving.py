"""From what a user typed to what is in the graph: entities by id, name or alias; relations."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from cli.options import BAD_INPUT, NO_ANSWER, CommandError
from cli.output import note

if TYPE_CHECKING:
    from graph_store import Candidate, Entity, GraphStore

_LISTED = 10


def resolve_entity(store: GraphStore, typed: str) -> Entity:
    """Return the entity with this id, else the only one that this name or alias links to.

    Says on stderr what a name was linked to.

    Raises:
        UnknownEntityError: nothing is called that; it carries the nearest names.
        CommandError: several entities are called that; they are listed.
    """
    from graph_store.errors import UnknownEntityError, shorten
    from graph_store.linking import resolve_entity as meanings_of

    try:
        return store.entity(typed.strip())
    except UnknownEntityError:
        best = meanings_of(store, typed)
    if len(best) > 1:
        raise CommandError(
            f"'{shorten(typed)}' is ambiguous: {len(best)} entities are called so; "
            "give the id of one:",
            BAD_INPUT,
            [described_candidate(store, c) for c in best[:_LISTED]],
        )
    found = best[0]
    note(f"linked '{shorten(typed)}' to {shown_candidate(found)} ({found.how}, {found.score:g})")
    return store.entity(found.entity)


def shown_candidate(candidate: Candidate) -> str:
    """Return a candidate's name, with its id where that differs."""
    from graph_store.errors import shorten

    if candidate.name == candidate.entity:
        return shorten(candidate.name)
    return f"{shorten(candidate.name)} (id {candidate.entity})"


def described_candidate(store: GraphStore, candidate: Candidate) -> str:
    """Return a candidate's id and name with its most certain fact, to tell namesakes apart."""
    from graph_store.errors import shorten

    facts = store.neighbors(candidate.entity, limit=1)
    known = f": {shorten(facts[0].text)} ({facts[0].confidence:g})" if facts else ""
    return f"{candidate.entity}  {shorten(candidate.name)}{known}"


def resolve_topics(store: GraphStore, question: str, typed: Sequence[str]) -> list[str]:
    """Return the ids of the topic entities: those typed, else those that the question names.

    Raises:
        UnknownEntityError: a typed one is not in the graph.
        CommandError: a typed one is ambiguous, or the question names no entity.
    """
    if typed:
        return list(dict.fromkeys(resolve_entity(store, topic).id for topic in typed))
    from graph_store import find_mentions

    topics: dict[str, None] = {}
    for mention in find_mentions(store, question):
        names = ", ".join(shown_candidate(c) for c in mention.best)
        how = mention.best[0]
        note(f"linked '{mention.text}' to {names} ({how.how}, {how.score:g})")
        if mention.ambiguous:
            note(f"warning: '{mention.text}' is ambiguous; --topic ID picks one of these")
        topics.update(dict.fromkeys(c.entity for c in mention.best[:_LISTED]))
    if not topics:
        raise CommandError(
            "the question names no entity of this graph; --topic says where to start", NO_ANSWER
        )
    return list(topics)


def check_relation(store: GraphStore, entity: str, relation: str) -> None:
    """Raise `CommandError` with near ones when no fact of the graph has this relation."""
    here = [use.relation for use in store.relations(entity)]
    if relation in here:
        return
    known = _relations(store)
    if relation in known:
        return
    from graph_store.errors import shorten

    near = _near(relation, known) or list(dict.fromkeys(here))[:5]
    names = ", ".join(f"'{shorten(name)}'" for name in near)
    raise CommandError(
        f"no relation '{shorten(relation)}' in this graph; did you mean {names}?"
        if near
        else f"no relation '{shorten(relation)}' in this graph",
        BAD_INPUT,
    )


def _relations(store: GraphStore) -> set[str]:
    """Return all relation ids: from the store's list where it is a file, else from its facts."""
    from graph_store.sqlite_store import SqliteStore

    if not isinstance(store, SqliteStore):
        return {fact.relation for fact in store.facts()}
    from contextlib import closing

    from graph_store.sqlite_schema import connect_reader

    with closing(connect_reader(store.path)) as connection:
        return {relation for (relation,) in connection.execute("SELECT id FROM relation")}


def _near(relation: str, known: Iterable[str]) -> list[str]:
    from rapidfuzz import fuzz, process

    from graph_store.verbalise import relation_words

    # By words, so that `used for` finds `/r/UsedFor`.
    words = {name: relation_words(name) for name in sorted(known)}
    found = process.extract(
        relation_words(relation), words, scorer=fuzz.WRatio, limit=5, score_cutoff=60
    )
    return [name for _, _, name in found]
