"""Readers of sources: one format a file, each yields `RawFact`s with their line numbers."""
