"""Where files that can be made again are kept."""

from __future__ import annotations

import os
from pathlib import Path

from platformdirs import user_cache_path


def cache_folder() -> Path:
    """Return `GRAPHMOOT_CACHE`, or else the user's cache folder for graphmoot."""
    configured = os.environ.get("GRAPHMOOT_CACHE")
    return Path(configured).expanduser().absolute() if configured else user_cache_path("graphmoot")
