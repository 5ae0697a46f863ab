"""Texts that several methods share."""

VERSION = "1"

REPAIR = """That reply could not be used: {fault}
Reply again with one JSON object only, nothing before or after it, with exactly these fields:
{form}"""
