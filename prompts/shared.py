"""Texts that several methods share."""

VERSION = "1"

REPAIR = """That reply could not be used: {fault}
Reply again with one JSON object only, nothing before or after it, with exactly these fields:
{form}"""

FORM = """Reply with one JSON object only, nothing before or after it. These are its fields, with \
what each may hold; give the values, not this description:
{form}"""
