"""Plots as inline SVG that take the page's colours, light or dark, and its fonts.

Figures are drawn with colours that stand for CSS variables and are replaced by them. The series'
colours are those of Okabe and Ito ("Color Universal Design", 2008), darker or lighter by theme.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from graph_store.errors import MissingExtraError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INK, SOFT, GRID, PAPER = "#010101", "#020202", "#030303", "#040404"
SERIES = ("#010011", "#010012", "#010013", "#010014", "#010015", "#010016", "#010017")
RAMP = ("#010021", "#010022", "#010023", "#010024", "#010025")
MARKERS = ("o", "s", "D", "^", "v", "P", "X")
"""Series differ by marker too, for those who cannot tell the colours."""

_VARIABLES = {
    INK: "--ink",
    SOFT: "--soft",
    GRID: "--line",
    PAPER: "--paper",
    **{colour: f"--series-{number}" for number, colour in enumerate(SERIES, 1)},
    **{colour: f"--ramp-{number}" for number, colour in enumerate(RAMP, 1)},
}
_RC: dict[str, Any] = {
    "svg.fonttype": "none",
    "text.parse_math": False,  # a label is text, whatever signs are in it
    "font.size": 10.5,
    "axes.titlesize": 11,
    "axes.labelsize": 10.5,
    "xtick.labelsize": 10,
    "ytick.labelsize": 10,
    "legend.fontsize": 10,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "axes.edgecolor": SOFT,
    "xtick.color": SOFT,
    "ytick.color": SOFT,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "axes.facecolor": "none",
    "figure.facecolor": "none",
    "savefig.facecolor": "none",
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "figure.constrained_layout.use": True,
}


@dataclass(frozen=True)
class Plot:
    """A plot for the page.

    Attributes:
        name: short, for ids.
        title: its heading.
        caption: how to read it.
        svg: an `svg` element without anything that a browser would fetch.
    """

    name: str
    title: str
    caption: str
    svg: str


def series_style(number: int) -> dict[str, Any]:
    """Return colour and marker of a series, by its number from 0."""
    return {"color": SERIES[number % len(SERIES)], "marker": MARKERS[number % len(MARKERS)]}


def shorten_titles(titles: Sequence[str], limit: int = 38) -> list[str]:
    """Return titles short enough to stand beside an axis."""
    return [title if len(title) <= limit else f"{title[: limit - 1]}…" for title in titles]


@contextmanager
def drawing() -> Iterator[Callable[..., Figure]]:
    """Yield a maker of figures (size in inches) in the report's style.

    Raises:
        MissingExtraError: the extra `plot` is not installed.
    """
    try:
        import matplotlib as mpl
        from matplotlib.figure import Figure
    except ModuleNotFoundError as error:
        raise MissingExtraError("a report's plots", "plot") from error
    # No pyplot and no global state: safe in a server and beside the user's own figures.
    with mpl.rc_context(_RC), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        yield Figure


def as_plot(figure: Figure, name: str, title: str, caption: str) -> Plot:
    """Return a figure as a plot; call within `drawing`."""
    import matplotlib as mpl

    buffer = io.StringIO()
    nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    with mpl.rc_context({"svg.hashsalt": name}):
        figure.savefig(buffer, format="svg", metadata=nothing)
    return Plot(name, title, caption, _inline(buffer.getvalue(), name, title))


def _inline(text: str, name: str, title: str) -> str:
    """Return the `svg` element alone, with ids of its own, theme colours and a label."""
    svg = text[text.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'\bid="', f'id="{name}-', svg)
    svg = re.sub(r'(url\(#|href="#)', rf"\g<1>{name}-", svg)
    svg = re.sub(r"#0[0-9a-f]{5}\b", lambda found: _variable(found[0]), svg)
    svg = re.sub(r"font: ([\d.]+)px [^;\"]*", r"font: \1px var(--plot-font)", svg)
    width, height = (
        float(found) for found in re.findall(r'(?:width|height)="([\d.]+)pt"', svg)[:2]
    )
    label = title.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")
    head = (
        f'<svg role="img" aria-label="{label}" viewBox="0 0 {width:g} {height:g}" '
        f'style="min-width: {width:.0f}px; max-width: {width * 4 / 3:.0f}px" '
        'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink">'
    )
    return head + svg[svg.index(">") + 1 :].strip()


def _variable(colour: str) -> str:
    return f"var({_VARIABLES[colour]})" if colour in _VARIABLES else colour
