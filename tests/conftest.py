"""Settings for all tests: no tracing, no reading of the user's own cache or environment."""

import os

os.environ["LANGSMITH_TEST_TRACKING"] = "false"
os.environ["LANGSMITH_TRACING"] = "false"
os.environ["HF_HUB_OFFLINE"] = "1"
for name in ("GRAPHMOOT_MODEL", "GRAPHMOOT_GRAPH", "OPENAI_API_KEY", "OPENAI_BASE_URL"):
    os.environ.pop(name, None)
