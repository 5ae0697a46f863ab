"""Data sets: each reader turns the rows of one source into questions with gold answers.

A reader takes named fields only, so that what a source has beside them (gold facts, gold paths,
queries) reaches no `GoldQuestion` and so no model.
"""
