"""The `graphmoot` command."""
