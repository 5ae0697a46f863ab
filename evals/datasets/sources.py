"""The data sets known by name: where their files are, who publishes them, under which licence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from evals.datasets import (
    commonsense_qa,
    commonsense_qa2,
    freebase,
    medqa,
    openbookqa,
    own_lines,
    path_question,
)
from evals.datasets.rows import Reader
from nodes.state import QuestionType

FREEBASE_LICENCE = "Freebase CC BY; derived files Apache-2.0"


@dataclass(frozen=True)
class Source:
    """A data set known by name.

    Attributes:
        name: on the command line.
        title: its own name, and the part of it that is meant.
        question_type: how its questions are answered.
        reader: of its file.
        file: below the data folder; None for the bundled sample.
        licence: of the data.
        home: the page where it is published.
        note: what is given to a method and what is withheld.
    """

    name: str
    title: str
    question_type: QuestionType | Literal["mixed"]
    reader: Reader
    file: str | None
    licence: str
    home: str
    note: str


_FREEBASE_NOTE = (
    "topics are given by name; a gold answer among them that the question does not say is withheld"
)
_FREEBASE_FILE = "freebase_mini/questions.jsonl.gz"

SOURCES: Mapping[str, Source] = {
    source.name: source
    for source in (
        Source(
            "sample",
            "the bundled sample's questions",
            "mixed",
            own_lines.READER,
            None,
            "Apache-2.0",
            "comes with graphmoot",
            "8 choice, 4 boolean, 3 open; topic entities of the sample graph are given",
        ),
        Source(
            "csqa",
            "CommonsenseQA, dev",
            "choice",
            commonsense_qa.READER,
            "qa/csqa_dev_rand_split.jsonl.gz",
            "MIT",
            "https://www.tau-nlp.org/commonsenseqa",
            "question_concept is given as a mention",
        ),
        Source(
            "csqa2",
            "CommonsenseQA 2.0, dev",
            "boolean",
            commonsense_qa2.READER,
            "qa/csqa2_dev.jsonl.gz",
            "CC BY 4.0",
            "https://allenai.github.io/csqa2/",
            "topic_prompt is given as a mention",
        ),
        Source(
            "obqa",
            "OpenBookQA, test",
            "choice",
            openbookqa.READER,
            "qa/openbookqa/test_complete.jsonl.gz",
            "none stated",
            "https://allenai.org/data/open-book-qa",
            "no topics; fact1 is never read",
        ),
        Source(
            "obqa-train",
            "OpenBookQA, train",
            "choice",
            openbookqa.READER,
            "qa/openbookqa/train.jsonl.gz",
            "none stated",
            "https://allenai.org/data/open-book-qa",
            "for few-shot examples; no topics; fact1 is never read",
        ),
        Source(
            "medqa",
            "MedQA-US, test, five options",
            "choice",
            medqa.READER,
            "qa/medqa_us_test_5opt.jsonl.gz",
            "MIT",
            "https://github.com/jind11/MedQA",
            "no topics; ids are made of line numbers",
        ),
        Source(
            "pq-2h",
            "PathQuestion, two hops",
            "open",
            path_question.READER,
            "pathquestion/PQ-2H.txt.gz",
            "Freebase CC BY",
            "https://github.com/zmtkeke/IRN",
            "the subject in the question is given as topic; the gold path is withheld",
        ),
        Source(
            "cwq",
            "ComplexWebQuestions, test",
            "open",
            freebase.reader_of("cwq"),
            _FREEBASE_FILE,
            FREEBASE_LICENCE,
            "https://www.tau-nlp.org/compwebq",
            _FREEBASE_NOTE,
        ),
        Source(
            "webqsp",
            "WebQSP, test",
            "open",
            freebase.reader_of("webqsp"),
            _FREEBASE_FILE,
            FREEBASE_LICENCE,
            "https://www.microsoft.com/en-us/download/details.aspx?id=52763",
            _FREEBASE_NOTE,
        ),
        Source(
            "grailqa",
            "GrailQA",
            "open",
            freebase.reader_of("grailqa"),
            _FREEBASE_FILE,
            FREEBASE_LICENCE,
            "https://dki-lab.github.io/GrailQA/",
            f"{_FREEBASE_NOTE}; a gold answer without a name is 'null', as published",
        ),
    )
}

READERS: Mapping[str, Reader] = {
    reader.name: reader
    for reader in (
        commonsense_qa.READER,
        commonsense_qa2.READER,
        openbookqa.READER,
        medqa.READER,
        path_question.READER,
        freebase.READER,
        own_lines.READER,
    )
}
"""By name, in the order in which they are tried on a file; the last takes whatever is left."""
