"""The web page and its HTTP routes."""
