"""Corrupted versions of a graph: a store file each, with a record and the list of false facts."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from evals.noise.drawing import Corruption, corruptible, draw
from evals.noise.paths import LIST_SUFFIX, RECORD_SUFFIX, version_paths
from evals.noise.settings import NoiseSettings
from evals.noise.source import SourceGraph, read_source
from graph_store import open_store
from graph_store.protocol import GraphStore
from graph_store.sqlite_writer import SqliteWriter
from graph_store.whole_file import content_hash, write_whole

Progress = Callable[[str, int, int], None]
"""Told (step, done, total); total is 0 when unknown."""


@dataclass(frozen=True)
class NoiseRecord:
    """The account of one corrupted version.

    Attributes:
        store: the store file; `store` + `.noise.json` holds this record.
        corrupted_facts: JSON lines, gzipped: `how`, `original` and `replacement` of each corrupted
            fact, in the order drawn: the list of a smaller share is the beginning of a larger's.
        source: location of the graph.
        source_sha256: of the graph's file; None where it is no file.
        sha256: of the store file; equal input gives an equal file.
        share_asked: of the facts that are no self-loops.
        share_reached: what rounding to whole facts made of it.
        facts: facts of the graph, and of its version.
        self_loops: of these; never corrupted.
        corrupted: how many facts were, by what was replaced.
        mean_confidence: of the version's `corrupted` and `true` facts; None where there are none.
        settings: how it was done.
        graphmoot: version of this package.
    """

    store: Path
    corrupted_facts: Path
    source: str
    source_sha256: str | None
    sha256: str
    share_asked: float
    share_reached: float
    facts: int
    self_loops: int
    corrupted: dict[str, int]
    mean_confidence: dict[str, float | None]
    settings: NoiseSettings
    graphmoot: str | None

    def to_json(self) -> dict[str, Any]:
        """Return the content of the record's file."""
        values = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return {
            **values,
            "store": str(self.store),
            "corrupted_facts": str(self.corrupted_facts),
            "settings": self.settings.to_json(),
        }


def corrupt(
    store: GraphStore | str | Path, *, to: str | Path, share: float, seed: int = 0, **choices: Any
) -> NoiseRecord:
    """Write a version of a graph with a share of its facts corrupted.

    Args:
        store: the graph, or a location of one.
        to: the store file to write; what is there is replaced.
        share: of the facts that are no self-loops, 0 to 1; that many are corrupted, rounded.
        seed: of everything drawn. With one seed, a smaller share is part of a larger one.
        choices: other fields of `NoiseSettings`.

    Raises:
        NoiseError: a choice is out of range, or so many facts cannot be corrupted so.
        StoreError: the graph cannot be read, or the version not be written.
    """
    settings = NoiseSettings(seed=seed, **choices)
    return corrupt_to_shares(store, to=to, shares=[share], settings=settings)[0]


def corrupt_to_shares(
    store: GraphStore | str | Path,
    *,
    to: str | Path,
    shares: Sequence[float],
    settings: NoiseSettings | None = None,
    progress: Progress | None = None,
) -> list[NoiseRecord]:
    """Write a version for each share; see `corrupt`. Nothing is written when one is impossible.

    Args:
        store: the graph, or a location of one.
        to: the store files; `{share}` and `{seed}` stand for their values.
        shares: each once.
        settings: how facts are corrupted.
        progress: told what is being done.

    Raises:
        NoiseError: as of `corrupt`; or two versions would have one name, or that of the graph.
        StoreError: the graph cannot be read, or a version not be written.
    """
    settings = settings or NoiseSettings()
    tell = progress or (lambda _step, _done, _total: None)
    opened = store if isinstance(store, GraphStore) else open_store(store)
    try:
        paths = version_paths(str(to), shares, settings.seed, opened.location)
        tell("reading facts", 0, 0)
        source = read_source(opened)
        total = corruptible(source)
        counts = [round(share * total) for share in shares]
        tell("drawing false facts", 0, 0)
        drawn = draw(source, max(counts), settings)
        return [
            _Version(source, drawn[:count], share, settings, path).write(tell)
            for path, share, count in zip(paths, shares, counts, strict=True)
        ]
    finally:
        if opened is not store:
            opened.close()


class _NoiseWriter(SqliteWriter):
    """A store's writer that also keeps entities and relations that no fact is left of."""

    def keep(self, entities: Sequence[str], relations: Sequence[str]) -> None:
        """Take entities and relations, in this order."""
        for entity in entities:
            self._entities.setdefault(entity, len(self._entities))
        for relation in relations:
            self._relations.setdefault(relation, len(self._relations))


class _Version:
    """One version of a graph on its way to disk."""

    def __init__(
        self,
        source: SourceGraph,
        drawn: Sequence[Corruption],
        share: float,
        settings: NoiseSettings,
        path: Path,
    ) -> None:
        self._source = source
        self._drawn = drawn
        self._share = share
        self._settings = settings
        self._path = path

    def write(self, tell: Progress) -> NoiseRecord:
        """Write the list of corrupted facts, the store, and last the record."""
        name = self._path.name
        tell(f"writing {name}", 0, 0)
        listed = self._path.with_name(name + LIST_SUFFIX)
        partial = listed.with_name(listed.name + ".tmp")
        writer = _NoiseWriter(self._path)
        try:
            self._write_list(partial)
            self._write_facts(writer)
            self._write_names(writer)
            info = writer.finish(lambda step: tell(f"writing {name}: {step}", 0, 0))
            partial.replace(listed)
        except BaseException:
            writer.abort()
            partial.unlink(missing_ok=True)
            raise
        record = self._record(listed, info.facts, info.self_loops)
        text = json.dumps(record.to_json(), ensure_ascii=False, indent=2)
        place = self._path.with_name(name + RECORD_SUFFIX)
        write_whole(place, f"{text}\n")
        return record

    def _write_facts(self, writer: _NoiseWriter) -> None:
        source, settings = self._source, self._settings
        number = {entity: place for place, entity in enumerate(source.entities)}
        relation = {name: place for place, name in enumerate(source.relations)}
        changed = {int(source.keys[c.fact]): c for c in self._drawn}
        writer.keep(source.entity_order, source.relation_order)
        for fact in source.store.facts():
            key = source.key(number[fact.head], relation[fact.relation], number[fact.tail])
            corruption = changed.get(key)
            confidence = 1.0 if settings.confidence == "remove" else fact.confidence
            if corruption is None:
                triple = fact.key
            else:
                triple = (
                    fact.head,
                    source.relations[corruption.relation],
                    source.entities[corruption.tail],
                )
                confidence = self._believed(fact.confidence, corruption)
            # Provenance stays: what is false must not be told by its lack of a source.
            writer.add(*triple, confidence, fact.provenance, fact.validity)

    def _believed(self, confidence: float, corruption: Corruption) -> float:
        """Return the confidence of a corrupted fact."""
        if self._settings.confidence == "remove":
            return 1.0
        if self._settings.confidence == "keep":
            return confidence
        lowered = max(self._settings.floor, round(confidence * corruption.factor, 6))
        return min(confidence, lowered)

    def _write_names(self, writer: _NoiseWriter) -> None:
        source = self._source
        for entity in source.entity_order:
            if entity in source.names:
                writer.name(entity, source.names[entity])
            for alias in source.store.entity(entity).aliases:
                writer.alias(entity, alias)
        for relation, words in source.labels.items():
            writer.label(relation, words)

    def _write_list(self, path: Path) -> None:
        # Without name and time in its header, equal content gives an equal file.
        with (
            path.open("wb") as raw,
            gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as file,
        ):
            for row in self._listed():
                file.write(json.dumps(row, ensure_ascii=False).encode("utf-8") + b"\n")

    def _listed(self) -> Iterator[dict[str, Any]]:
        source = self._source
        for corruption in self._drawn:
            head, relation, tail = source.facts[corruption.fact].tolist()
            confidence = float(source.confidences[corruption.fact])
            believed = self._believed(confidence, corruption)
            replaced = source.triple(head, corruption.relation, corruption.tail, believed)
            yield {
                "how": corruption.how,
                "original": source.triple(head, relation, tail, confidence).to_dict(),
                "replacement": replaced.to_dict(),
            }

    def _record(self, listed: Path, facts: int, self_loops: int) -> NoiseRecord:
        source, total = self._source, corruptible(self._source)
        path = Path(source.store.location)
        how = Counter(corruption.how for corruption in self._drawn)
        return NoiseRecord(
            store=self._path,
            corrupted_facts=listed,
            source=source.store.location,
            source_sha256=content_hash(path) if path.is_file() else None,
            sha256=content_hash(self._path),
            share_asked=self._share,
            share_reached=len(self._drawn) / total if total else 0.0,
            facts=facts,
            self_loops=self_loops,
            corrupted={"tail": how["tail"], "relation": how["relation"]},
            mean_confidence=self._mean_confidence(),
            settings=self._settings,
            graphmoot=_package_version(),
        )

    def _mean_confidence(self) -> dict[str, float | None]:
        source = self._source
        rows = [c.fact for c in self._drawn]
        changed = [self._believed(float(source.confidences[c.fact]), c) for c in self._drawn]
        kept = len(source.facts) - len(rows)
        total = float(source.confidences.sum() - source.confidences[rows].sum()) if kept else 0.0
        true = float(kept) if self._settings.confidence == "remove" else total
        return {
            "corrupted": round(sum(changed) / len(changed), 6) if changed else None,
            "true": round(true / kept, 6) if kept else None,
        }


def _package_version() -> str | None:
    try:
        return version("graphmoot")
    except PackageNotFoundError:  # run from a checkout
        return None
