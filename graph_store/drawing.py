"""Evidence as a picture and as a file: topics at the left, what is farther stands farther right."""

from __future__ import annotations

import textwrap
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graph_store.drawing_layout import Box, Edge, Layout, arrange, columns_of
from graph_store.errors import MissingExtraError, StoreError, shorten
from graph_store.verbalise import entity_words, relation_words
from graph_store.whole_file import replace_whole

if TYPE_CHECKING:
    from graph_store.model import Subgraph, Triple

NAME_CHARACTERS, LINE_CHARACTERS, RELATION_CHARACTERS = 44, 22, 26
"""Longer names and relations are shortened; names are broken into lines."""

NAME_SIZE, LABEL_SIZE, NOTE_SIZE = 9.5, 7.5, 8.0
MARGIN, FOOT, LEAST_WIDTH = 0.4, 0.75, 6.4
"""Inches: around the drawing, for the legend below it, of the whole picture at least."""

PIXELS_AN_INCH, MOST_PIXELS = 150, 12_000
MOST_FACTS = 60
"""More are not drawn, and the picture says so: nobody can read them. GraphML has them all."""

INK, SOFT_INK, PAPER = "#1c2733", "#5b6b7c", "#ffffff"
TOPIC_FILL, TOPIC_LINE, FILL, LINE = "#ffe3ab", "#c77700", "#f2f5f8", "#8a9bad"
RAMP = ("#c9d1d9", "#86a8ca", "#2f74b5", "#0b3566")
"""Colours of confidence from 0 to 1; the palest still shows on paper."""

_FONTS = (
    "DejaVu Sans",
    "Noto Sans CJK JP",
    "Noto Sans CJK SC",
    "Source Han Sans",
    "WenQuanYi Zen Hei",
    "Hiragino Sans",
    "Arial Unicode MS",
    "Noto Sans Arabic",
    "Noto Sans Devanagari",
)


def draw_subgraph(subgraph: Subgraph, path: str | Path) -> None:
    """Draw evidence as a PNG.

    Topics are highlighted, edges carry relation and confidence; their colour and width show the
    confidence too. Parallel and opposite facts are bent apart.

    Args:
        subgraph: what to draw.
        path: the file; it is replaced as a whole.

    Raises:
        MissingExtraError: the extra `plot` is not installed.
        StoreError: the file cannot be written.
    """
    try:
        import matplotlib as mpl
        from matplotlib import font_manager
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ModuleNotFoundError as error:
        raise MissingExtraError("a picture", "plot") from error
    installed = set(font_manager.get_font_names())
    fonts = [name for name in _FONTS if name in installed] or ["sans-serif"]
    # No pyplot and no global state: safe in a server and beside the user's own figures.
    with mpl.rc_context({"font.family": fonts}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        figure = Figure(facecolor=PAPER)
        FigureCanvasAgg(figure)
        _Picture(figure, subgraph).draw()
        _replace(Path(path), lambda temporary: _save(figure, temporary))


def _save(figure: Any, path: Path) -> None:
    wide, high = figure.get_size_inches()
    dpi = min(PIXELS_AN_INCH, MOST_PIXELS / max(wide, high))
    figure.savefig(path, format="png", dpi=dpi, facecolor=PAPER, metadata={"Software": None})


def write_graphml(subgraph: Subgraph, path: str | Path) -> None:
    """Write evidence as GraphML, which `open_store` and most graph tools read.

    Characters that XML cannot hold become U+FFFD.

    Raises:
        StoreError: the file cannot be written.
    """
    import networkx as nx

    graph = nx.MultiDiGraph()
    source = subgraph.to_networkx()
    for node, data in source.nodes(data=True):
        graph.add_node(_xml(node), **{key: _xml(value) for key, value in data.items()})
    for head, tail, key, data in source.edges(keys=True, data=True):
        values = {name: _xml(value) for name, value in data.items()}
        graph.add_edge(_xml(head), _xml(tail), key=_xml(key), **values)
    _replace(Path(path), lambda temporary: nx.write_graphml(graph, temporary))


def _xml(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    return "".join(c if c in "\t\n\r" or _allowed_in_xml(ord(c)) else "\ufffd" for c in value)


def _allowed_in_xml(code: int) -> bool:
    return code >= 0x20 and not 0xD800 <= code <= 0xDFFF and code not in (0xFFFE, 0xFFFF)


def _replace(path: Path, write: Callable[[Path], None]) -> None:
    try:
        replace_whole(path, write)
    except OSError as error:
        raise StoreError(f"{path}: cannot be written: {error.strerror or error}") from error


class _Picture:
    """One drawing on one figure, in inches."""

    def __init__(self, figure: Any, subgraph: Subgraph) -> None:
        from matplotlib.colors import LinearSegmentedColormap

        self._figure = figure
        self._subgraph = subgraph
        self._ramp = LinearSegmentedColormap.from_list("confidence", RAMP)

    def draw(self) -> None:
        """Lay everything out, size the figure to it, and paint."""
        layout = self._layout()
        wide = max(LEAST_WIDTH, layout.width + 2 * MARGIN)
        high = layout.height + 2 * MARGIN + FOOT
        self._figure.set_size_inches(wide, high)
        axes = self._figure.add_axes((0, 0, 1, 1))
        left = (wide - layout.width) / 2
        axes.set(xlim=(-left, wide - left), ylim=(-FOOT - MARGIN, high - FOOT - MARGIN))
        axes.set_axis_off()
        # The palest first, so that what is certain lies on top where curves cross.
        for edge in sorted(layout.edges, key=lambda e: e.fact.confidence):
            self._draw_edge(axes, edge)
        for box in layout.boxes.values():
            self._draw_box(axes, box)
        self._draw_legend(axes, wide, high, left)

    def _layout(self) -> Layout:
        # Facts come best first and along their paths, so that those drawn hang together.
        facts, topics = self._subgraph.facts[:MOST_FACTS], self._subgraph.topic_entities
        names = dict.fromkeys(topics, "")
        for fact in facts:
            names[fact.head], names[fact.tail] = fact.head_name, fact.tail_name
        names = {entity: name or entity for entity, name in names.items()}
        namesakes = Counter(names.values())
        boxes = {}
        for entity, column in columns_of(topics, facts).items():
            name = names[entity]
            text = _wrapped(entity_words(name))
            if namesakes[name] > 1:
                text += f"\n({_printable(shorten(entity, LINE_CHARACTERS))})"
            wide, high = self._measure(text, NAME_SIZE, bold=entity in topics)
            boxes[entity] = Box(
                text, wide + 0.26, high + 0.2, topic=entity in topics, column=column
            )
        if not boxes:
            wide, high = self._measure("no evidence", NAME_SIZE)
            boxes[""] = Box("no evidence", wide + 0.26, high + 0.2)
        return arrange(boxes, [Edge(fact, self._label(fact)) for fact in facts])

    def _label(self, fact: Triple) -> Box:
        relation = fact.relation_label or relation_words(fact.relation)
        text = f"{_printable(shorten(relation, RELATION_CHARACTERS))}  {fact.confidence:.2g}"
        wide, high = self._measure(text, LABEL_SIZE)
        return Box(text, wide + 0.08, high + 0.06)

    def _measure(self, text: str, points: float, *, bold: bool = False) -> tuple[float, float]:
        from matplotlib.font_manager import FontProperties

        renderer = self._figure.canvas.get_renderer()
        font = FontProperties(size=points, weight="bold" if bold else "normal")
        lines = [renderer.get_text_width_height_descent(x, font, False) for x in text.split("\n")]
        wide = max(line[0] for line in lines) / self._figure.dpi
        return (wide, len(lines) * points * 1.22 / 72)

    def _draw_edge(self, axes: Any, edge: Edge) -> None:
        from matplotlib.patches import FancyArrowPatch
        from matplotlib.path import Path as Curve

        confidence = edge.fact.confidence
        colour = self._ramp(confidence)
        arrow = FancyArrowPatch(
            path=Curve(edge.points),
            arrowstyle="-|>,head_length=5,head_width=2.6",
            mutation_scale=1,
            linewidth=0.8 + 1.7 * confidence,
            color=colour,
            capstyle="butt",
            joinstyle="miter",
            zorder=2 + confidence,
        )
        axes.add_patch(arrow)
        axes.text(
            edge.label.x,
            edge.label.y,
            edge.label.text,
            fontsize=LABEL_SIZE,
            color=INK,
            ha="center",
            va="center",
            parse_math=False,
            zorder=5,
            bbox={"boxstyle": "round,pad=0.12", "facecolor": PAPER, "edgecolor": "none"},
        )

    def _draw_box(self, axes: Any, box: Box) -> None:
        _rectangle(axes, box.x, box.y, box.width, box.height, topic=box.topic)
        axes.text(
            box.x,
            box.y,
            box.text,
            fontsize=NAME_SIZE,
            fontweight="bold" if box.topic else "normal",
            color=INK,
            ha="center",
            va="center",
            linespacing=1.15,
            parse_math=False,
            zorder=7,
        )

    def _draw_legend(self, axes: Any, wide: float, high: float, left: float) -> None:
        start, low = MARGIN - left, -FOOT - MARGIN + 0.42
        for x, text, topic in ((start, "topic entity", True), (start + 1.3, "entity", False)):
            _rectangle(axes, x + 0.13, low, 0.26, 0.17, topic=topic)
            axes.text(x + 0.33, low, text, fontsize=NOTE_SIZE, color=SOFT_INK, va="center")
        if (count := len(self._subgraph.facts)) > MOST_FACTS:
            text = f"the best {MOST_FACTS} of {count:,} facts"
            axes.text(start + 2.15, low, text, fontsize=NOTE_SIZE, color=SOFT_INK, va="center")
        bar = self._figure.add_axes(
            ((wide - MARGIN - 2.2) / wide, 0.36 / high, 2.2 / wide, 0.11 / high)
        )
        bar.imshow(
            [[i / 255 for i in range(256)]], cmap=self._ramp, aspect="auto", extent=(0, 1, 0, 1)
        )
        bar.set(yticks=[], xticks=[0, 0.25, 0.5, 0.75, 1])
        bar.set_xticklabels(["0", "0.25", "0.5", "0.75", "1"])
        bar.tick_params(labelsize=NOTE_SIZE - 1, length=2, colors=SOFT_INK)
        bar.set_title("confidence", fontsize=NOTE_SIZE, color=SOFT_INK, pad=3)
        for spine in bar.spines.values():
            spine.set_visible(False)


def _rectangle(axes: Any, x: float, y: float, width: float, height: float, *, topic: bool) -> None:
    from matplotlib.patches import FancyBboxPatch

    axes.add_patch(
        FancyBboxPatch(
            (x - width / 2, y - height / 2),
            width,
            height,
            boxstyle="round,pad=0,rounding_size=0.07",
            facecolor=TOPIC_FILL if topic else FILL,
            edgecolor=TOPIC_LINE if topic else LINE,
            linewidth=1.6 if topic else 0.9,
            zorder=6,
        )
    )


def _wrapped(name: str) -> str:
    lines = textwrap.wrap(_printable(shorten(name, NAME_CHARACTERS)), LINE_CHARACTERS)
    return "\n".join(lines) or "\ufffd"


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() else "\ufffd" for c in text)
