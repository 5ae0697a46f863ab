"""Prompt texts, one module a method."""
