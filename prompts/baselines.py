"""Prompts of the baselines without a graph: zero-shot, few-shot, chain of thought."""

VERSION = "1"

SYSTEM = """You answer one question from what you know. \
Reply with a single JSON object and nothing else. Write in the language of the question."""

ANSWER = "Answer the question. Give the answer and how sure you are of it in percent."
REASON = """Work the question out step by step before you answer: what is asked, what you know \
about it, what follows. Give this reasoning in a few short sentences, then the answer that follows \
from it, and how sure you are of it in percent."""
OPEN = " Give the answer itself in as few words as possible, or null when you do not know it."

EXAMPLES = "These are other questions, each with its right answer:\n\n{examples}"
EXAMPLE = "{question}\nAnswer: {answer}"
EXAMPLE_WITH_REASONING = "{question}\nReasoning: {reasoning}\nAnswer: {answer}"
YOURS = "Now your question."
