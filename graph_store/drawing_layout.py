"""Where the parts of a drawing stand: columns by hops from a topic, rows with few crossings.

Pure geometry in inches, y upwards; it depends on nothing but the facts and their order, so equal
evidence gives equal pictures.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from graph_store.model import Triple

ROW_GAP, COLUMN_GAP, LEAST_GAP = 0.34, 0.75, 1.3
"""Between boxes of a column; beside the labels between columns; the least between columns."""

BEND, SWEEPS, STEPS = 0.3, 6, 48
_SPOTS = (0.5, 0.44, 0.56, 0.38, 0.62, 0.32, 0.68, 0.26, 0.74, 0.2, 0.8, 0.15, 0.85)

Point = tuple[float, float]
Measure = Callable[[str, float], Point]


@dataclass
class Box:
    """A rectangle with a text: an entity, or an edge's label.

    Attributes:
        text: what stands in it, lines broken already.
        width, height, x, y: its size and its centre.
        topic: whether it is a topic entity.
        column: hops from the nearest topic.
    """

    text: str
    width: float
    height: float
    x: float = 0.0
    y: float = 0.0
    topic: bool = False
    column: int = 0

    def overlap(self, other: Box) -> float:
        """Return the area that two boxes share."""
        wide = (self.width + other.width) / 2 - abs(self.x - other.x)
        high = (self.height + other.height) / 2 - abs(self.y - other.y)
        return max(0.0, wide) * max(0.0, high)


@dataclass
class Edge:
    """A fact as a curve from box to box with a label on it."""

    fact: Triple
    label: Box
    points: list[Point] = field(default_factory=list)


@dataclass
class Layout:
    """All boxes and edges, and the size of what they fill, from (0, 0)."""

    boxes: dict[str, Box]
    edges: list[Edge]
    width: float = 0.0
    height: float = 0.0


def columns_of(topics: Sequence[str], facts: Sequence[Triple]) -> dict[str, int]:
    """Return each entity's hops from the nearest topic, in order of discovery."""
    around: dict[str, list[str]] = {}
    for fact in facts:
        around.setdefault(fact.head, []).append(fact.tail)
        around.setdefault(fact.tail, []).append(fact.head)
    found: dict[str, int] = dict.fromkeys(topics, 0)
    # Facts that no topic reaches come last, each part from its own first entity.
    for start in (*list(found), *around):
        found.setdefault(start, 0)
        queue = [start]
        for entity in queue:
            for other in around.get(entity, ()):
                if other not in found or found[other] > found[entity] + 1:
                    found[other] = found[entity] + 1
                    queue.append(other)
    return found


def arrange(boxes: dict[str, Box], edges: list[Edge]) -> Layout:
    """Place boxes, curves and labels; the boxes know their sizes and columns."""
    layout = Layout(boxes, edges)
    columns = _ordered_columns(boxes, edges)
    _place_columns(layout, columns)
    _place_rows(layout, columns)
    _bend(layout)
    _place_labels(layout)
    _fit(layout)
    return layout


def _links(boxes: dict[str, Box], edges: list[Edge]) -> dict[str, list[str]]:
    links: dict[str, list[str]] = {entity: [] for entity in boxes}
    for edge in edges:
        head, tail = edge.fact.head, edge.fact.tail
        if head != tail:
            links[head].append(tail)
            links[tail].append(head)
    return links


def _ordered_columns(boxes: dict[str, Box], edges: list[Edge]) -> list[list[str]]:
    """Return the columns, each sorted by where its neighbours stand (barycentre sweeps)."""
    links = _links(boxes, edges)
    columns: list[list[str]] = [[] for _ in range(max(b.column for b in boxes.values()) + 1)]
    for entity, box in boxes.items():
        columns[box.column].append(entity)
    place = {e: (i + 0.5) / len(c) for c in columns for i, e in enumerate(c)}
    for sweep in range(SWEEPS):
        for column in columns if sweep % 2 == 0 else reversed(columns):
            middle = {e: _mean([place[o] for o in links[e]], place[e]) for e in column}
            column.sort(key=middle.__getitem__)  # stable: ties keep their order
            place.update({e: (i + 0.5) / len(column) for i, e in enumerate(column)})
    return columns


def _mean(values: Sequence[float], default: float) -> float:
    return math.fsum(values) / len(values) if values else default


def _place_columns(layout: Layout, columns: list[list[str]]) -> None:
    left = 0.0
    for number, column in enumerate(columns):
        if number:
            labels = [
                edge.label.width
                for edge in layout.edges
                if number - 1
                in (layout.boxes[edge.fact.head].column, layout.boxes[edge.fact.tail].column)
            ]
            left += max(LEAST_GAP, max(labels, default=0.0) + COLUMN_GAP)
        wide = max(layout.boxes[entity].width for entity in column)
        for entity in column:
            layout.boxes[entity].x = left + wide / 2
        left += wide


def _place_rows(layout: Layout, columns: list[list[str]]) -> None:
    """Space the fullest column evenly; the others follow their neighbours as far as room allows."""
    boxes, links = layout.boxes, _links(layout.boxes, layout.edges)
    fullest = max(range(len(columns)), key=lambda n: (len(columns[n]), -n))
    placed: set[str] = set()
    for number in sorted(range(len(columns)), key=lambda n: (abs(n - fullest), n)):
        column = columns[number]
        wanted = {e: _mean([boxes[o].y for o in links[e] if o in placed], math.inf) for e in column}
        known = [y for y in wanted.values() if y < math.inf]
        wanted = {e: y if y < math.inf else _mean(known, 0.0) for e, y in wanted.items()}
        column.sort(key=lambda e: -wanted[e])
        top = math.inf
        for entity in column:
            box = boxes[entity]
            box.y = min(wanted[entity], top - box.height / 2)
            top = box.y - box.height / 2 - ROW_GAP
        shift = _mean([wanted[e] - boxes[e].y for e in column], 0.0)
        for entity in column:
            boxes[entity].y += shift
        placed.update(column)


def _bend(layout: Layout) -> None:
    """Draw every edge's curve; edges of the same two entities go apart."""
    pairs: dict[tuple[str, ...], list[Edge]] = {}
    for edge in layout.edges:
        pairs.setdefault(tuple(sorted((edge.fact.head, edge.fact.tail))), []).append(edge)
    ports = _ports(layout)
    for edges in pairs.values():
        for position, edge in enumerate(edges):
            apart = position - (len(edges) - 1) / 2
            head, tail = layout.boxes[edge.fact.head], layout.boxes[edge.fact.tail]
            if head is tail:
                edge.points = _loop(head, position)
                continue
            starts, ends = ports[id(edge), True], ports[id(edge), False]
            if head.column == tail.column:
                edge.points = _beside(head, tail, starts, ends, position)
            else:
                edge.points = _across(head, tail, starts, ends, apart * BEND * 2)


def _ports(layout: Layout) -> dict[tuple[int, bool], float]:
    """Return where on a box's side each edge starts or ends, so that arrows do not pile up."""
    sides: dict[tuple[str, bool], list[tuple[float, int, Edge, bool]]] = {}
    for order, edge in enumerate(layout.edges):
        for here, there, starts in (
            (edge.fact.head, edge.fact.tail, True),
            (edge.fact.tail, edge.fact.head, False),
        ):
            box, other = layout.boxes[here], layout.boxes[there]
            if box is not other:
                side = sides.setdefault((here, other.column >= box.column), [])
                side.append((-other.y, order, edge, starts))
    ports: dict[tuple[int, bool], float] = {}
    for (entity, _), items in sides.items():
        reach = 0.62 * layout.boxes[entity].height
        for position, (_, _, edge, starts) in enumerate(sorted(items, key=lambda i: i[:2])):
            step = reach / max(3, len(items))
            ports[id(edge), starts] = ((len(items) - 1) / 2 - position) * step
    return ports


def _across(head: Box, tail: Box, starts: float, ends: float, bend: float) -> list[Point]:
    way = 1.0 if head.column < tail.column else -1.0
    a = (head.x + way * head.width / 2, head.y + starts)
    d = (tail.x - way * tail.width / 2, tail.y + ends)
    pull = 0.42 * abs(d[0] - a[0])
    b = (a[0] + way * pull, a[1] - bend)
    c = (d[0] - way * pull, d[1] - bend)
    return _curve(a, b, c, d)


def _beside(head: Box, tail: Box, starts: float, ends: float, position: int) -> list[Point]:
    """Go from one box of a column to another by the right of what is between."""
    out = 0.45 + 0.13 * abs(head.y - tail.y) + 0.4 * position
    a = (head.x + head.width / 2, head.y + starts)
    d = (tail.x + tail.width / 2, tail.y + ends)
    far = max(a[0], d[0]) + out
    return _curve(a, (far, a[1]), (far, d[1]), d)


def _loop(box: Box, position: int) -> list[Point]:
    top, side, high = box.y + box.height / 2, 0.22 + 0.08 * position, 0.55 + 0.3 * position
    a, d = (box.x - side, top), (box.x + side, top)
    return _curve(a, (a[0], top + high), (d[0], top + high), d)


def _curve(a: Point, b: Point, c: Point, d: Point) -> list[Point]:
    points = []
    for step in range(STEPS + 1):
        t = step / STEPS
        u = 1 - t
        weights = (u * u * u, 3 * u * u * t, 3 * u * t * t, t * t * t)
        x, y = (sum(w * p[i] for w, p in zip(weights, (a, b, c, d), strict=True)) for i in (0, 1))
        points.append((x, y))
    return points


def _place_labels(layout: Layout) -> None:
    """Put each label on its curve where it covers least of the boxes and of other labels."""
    taken = list(layout.boxes.values())
    for edge in layout.edges:
        label = edge.label
        best: tuple[float, Point] | None = None
        for spot in _SPOTS:
            label.x, label.y = edge.points[round(spot * STEPS)]
            covered = math.fsum(label.overlap(other) for other in taken)
            if best is None or covered < best[0] - 1e-9:
                best = (covered, (label.x, label.y))
            if covered == 0:
                break
        assert best is not None
        label.x, label.y = best[1]
        taken.append(label)


def _fit(layout: Layout) -> None:
    """Move everything so that it fills from (0, 0)."""
    everything = [*layout.boxes.values(), *(edge.label for edge in layout.edges)]
    curves = [point for edge in layout.edges for point in edge.points]
    left = min([b.x - b.width / 2 for b in everything] + [x for x, _ in curves])
    right = max([b.x + b.width / 2 for b in everything] + [x for x, _ in curves])
    low = min([b.y - b.height / 2 for b in everything] + [y for _, y in curves])
    high = max([b.y + b.height / 2 for b in everything] + [y for _, y in curves])
    for box in everything:
        box.x, box.y = box.x - left, box.y - low
    for edge in layout.edges:
        edge.points = [(x - left, y - low) for x, y in edge.points]
    layout.width, layout.height = right - left, high - low
