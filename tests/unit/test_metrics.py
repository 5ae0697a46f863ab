"""Normal forms of answers, and what one prediction is worth."""

from __future__ import annotations

import re
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evals.metrics import METRICS, score_question
from evals.normalise import normal_form, same_answer
from evals.records import Prediction
from nodes.question_file import GoldQuestion


def open_question(*answers, aliases=None):
    return GoldQuestion("q", "Who built it?", answers, aliases=aliases or {})


CHOICE = GoldQuestion(
    "q", "Where?", ("B",), "choice", {"A": "river", "B": "the bank", "C": "a dog"}
)
BOOLEAN = GoldQuestion("q", "Is it?", ("true",), "boolean")


def values(gold, *answers, aliases=None, **more):
    return score_question(gold, Prediction("q", answers, **more), aliases).values


# Case 34: what normalisation must not do


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("A", "a"),
        ("The", "the"),
        ("the A", "a"),
        ("The The", "the"),
        ("Vitamin A", "vitamin a"),
        ("hepatitis a", "hepatitis a"),
        ("?!", "?!"),
        ("%", "%"),
    ],
)
def test_nothing_is_normalised_to_an_empty_answer(text, form):
    assert normal_form(text) == form


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("1.0", "1"),
        ("(3.14)", "3.14"),
        ("−3.14", "-3.14"),
        ("(−3.140)", "-3.14"),
        ("1,000", "1000"),
        ("1,234,567.50", "1234567.5"),
        ("50 %", "50.0%"),
        ("+5", "5"),
        ("-0", "0"),
        (".5", "0.5"),
        ("2014.", "2014"),
        ('"7"', "7"),
        ("1e3", "1000"),
        ("１０", "10"),
        ("population 1,000", "Population: 1000"),
    ],
)
def test_numbers_are_compared_by_value(one, other):
    assert same_answer(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("1.0", "10"),
        ("-3.14", "3.14"),
        ("50%", "50"),
        ("1970-09", "197009"),
        ("1970-09", "1970"),
        ("10:30", "1030"),
        ("1/2", "12"),
        ("½", "12"),
        ("1½", "11/2"),
        ("10²", "102"),
        ("1,00", "100"),
        ("007", "7"),
        ("version 3.10", "version 3.1"),
        ("version 1.0", "version 10"),
        ("-3 °C", "3 °C"),
        ("C++", "C"),
        ("C#", "C"),
        ("A+", "A"),
        ("Vitamin A", "Vitamin"),
        ("año", "ano"),
        ("", ""),
        ("  ", ""),
        ("a", ""),
        ("?", ""),
    ],
)
def test_different_answers_stay_different(one, other):
    assert not same_answer(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The Who", "who"),
        ("U.S.", "US"),
        ("O'Neil (actor)", "o’neil actor"),
        ("Marrow_Light", "marrow light"),
        ("1970–09", "1970-09"),
        ("STRASSE", "Straße"),
        ("ﬁsh", "fish"),
        ("Cafe\u0301", "café"),
        ("soft\u00adhyphen", "softhyphen"),
        ("two\n lines", "two lines"),
        ("東京", "東京"),
        ("H₂O", "h2o"),
    ],
)
def test_case_punctuation_and_articles_do_not_count(one, other):
    assert same_answer(one, other)


@given(st.text(max_size=30))
def test_only_blank_text_has_an_empty_form(text):
    assert bool(normal_form(text)) == bool(text.strip())


@given(st.integers(-(10**40), 10**40), st.integers(0, 12))
def test_numbers_of_any_size_are_told_apart_and_brought_together(number, zeros):
    assert normal_form(f"{number}.{'0' * zeros}") == normal_form(str(number))
    assert normal_form(f"{number:,}") == normal_form(str(number))
    assert normal_form(str(number)) != normal_form(str(number + 1))


def squad(text):
    """The rule of SQuAD 1.1's evaluation in other words: an oracle for plain words."""
    kept = [c for c in text.lower() if c not in string.punctuation]
    words = re.split(r"\s+", "".join(kept).strip())
    return " ".join(word for word in words if word not in ("a", "an", "the"))


@given(st.lists(st.from_regex(r"(?:[Tt]he|an|[A-Za-z]{2,6}[.,!'’]?)", fullmatch=True), max_size=6))
def test_plain_words_are_normalised_as_squad_does(words):
    text = " ".join([*words, "end"]).replace("’", "'")
    assert normal_form(text) == squad(text)


# Open questions


def test_the_first_answer_decides_exact_match():
    gold = open_question("Edith Venn", "Josiah Marrow")
    assert values(gold, "edith venn.", "Nobody")["exact-match"] == 1
    assert values(gold, "Nobody", "Edith Venn")["exact-match"] == 0
    assert values(gold, "Josiah Marrow")["exact-match"] == 1


def test_an_alias_counts_as_its_gold_answer():
    own = open_question("Edith Venn", aliases={"Edith Venn": ("Mistress Venn",)})
    assert values(own, "mistress venn")["exact-match"] == 1
    bare = open_question("Edith Venn")
    assert values(bare, "Mistress Venn")["exact-match"] == 0
    assert values(bare, "Mistress Venn", aliases={"Edith Venn": ["Mistress Venn"]})["f1"] == 1
    assert values(bare, "Mistress Venn", aliases={"edith venn": ["Mistress Venn"]})["f1"] == 1


def test_one_gold_answer_named_twice_counts_once():
    gold = open_question("USA", "Canada", aliases={"USA": ("United States",)})
    scored = values(gold, "USA", "United States", "usa", "Mexico")
    assert scored["precision"] == 1 / 2
    assert scored["recall"] == 1 / 2
    assert scored["f1"] == 1 / 2


def test_gold_answers_of_one_name_are_one_gold_answer():
    assert values(open_question("null", "Null"), "null")["recall"] == 1


def test_a_name_goes_before_an_alias():
    gold = open_question("New York", "NYC", aliases={"New York": ("NYC",)})
    assert values(gold, "NYC", "New York")["recall"] == 1


@given(
    st.lists(st.sampled_from("pqrstuv"), min_size=1, max_size=6),
    st.lists(st.sampled_from("pqrstuv"), min_size=1, max_size=6),
)
def test_set_scores_are_those_of_the_definition(gold, answered):
    scored = values(open_question(*dict.fromkeys(gold)), *answered)
    truth, said = set(gold), set(answered)
    precision = sum(a in truth for a in said) / len(said)
    recall = sum(g in said for g in truth) / len(truth)
    f1 = 2 * precision * recall / (precision + recall) if precision + recall else 0
    assert scored["precision"] == pytest.approx(precision)
    assert scored["recall"] == pytest.approx(recall)
    assert scored["f1"] == pytest.approx(f1)


# hits@1-substring


def authors_rule(answer, golds):
    said = answer.strip().replace(" ", "").lower()
    for gold in golds:
        right = gold.strip().replace(" ", "").lower()
        if said == right or said in right or right in said:
            return True
    return False


@given(
    st.text("ab C.", min_size=1, max_size=6).filter(str.strip),
    st.lists(st.text("ab C.", min_size=1, max_size=4).filter(str.strip), min_size=1, max_size=3),
)
def test_the_substring_rule_is_the_authors(answer, golds):
    hit = values(open_question(*golds), answer)["hits@1-substring"]
    assert hit == authors_rule(answer, golds)


def test_a_blank_answer_hits_by_substring_and_by_nothing_else():
    score = score_question(open_question("Edith Venn"), Prediction("q", ("",)))
    assert score.values == {**dict.fromkeys(METRICS, 0.0), "hits@1-substring": 1.0}
    assert score.outcome == "no_answer"
    assert "blank" in score.why


def test_no_answer_at_all_does_not_hit():
    for prediction in (Prediction("q"), Prediction("q", status="no_answer")):
        score = score_question(open_question("Edith Venn"), prediction)
        assert score.outcome == "no_answer"
        assert set(score.values.values()) == {0.0}


def test_every_spelling_of_a_gold_answer_is_compared_by_substring():
    # Both have one normal form, but only the second is a part of the answer.
    gold = open_question("Our mutual, friend", "Our mutual friend")
    assert values(gold, "The story of Our mutual friend")["hits@1-substring"] == 1


def test_blank_aliases_are_no_hit():
    gold = open_question("Edith Venn")
    assert values(gold, "Nobody", aliases={"Edith Venn": ["", " "]})["hits@1-substring"] == 0


def test_an_answer_that_lists_every_entity_does_not_win():
    """Case 35: it hits by substring, and loses by what stands beside it."""
    gold = open_question("Edith Venn")
    everyone = [f"Person {n}" for n in range(50)]
    listed = values(gold, *everyone, "Edith Venn")
    in_one_text = values(gold, ", ".join([*everyone, "Edith Venn"]))
    modest = values(gold, "Edith Venn")
    assert listed["hits@1-substring"] == in_one_text["hits@1-substring"] == 1
    assert listed["exact-match"] == in_one_text["exact-match"] == 0
    assert listed["f1"] == pytest.approx(2 / 52)
    assert in_one_text["f1"] == 0
    assert modest["exact-match"] == modest["f1"] == 1


# Multiple choice and true/false


@pytest.mark.parametrize("said", ["B", "b", "(B)", "B.", "the bank", "Bank", "B) the bank"])
def test_a_choice_may_be_given_as_label_or_words(said):
    assert set(values(CHOICE, said).values()) == {1.0}


@pytest.mark.parametrize("said", ["A", "river", "a dog", "D", "bank robber", "B or A"])
def test_another_choice_or_none_is_wrong(said):
    scored = values(CHOICE, said)
    assert scored["accuracy"] == scored["exact-match"] == scored["f1"] == 0


def test_a_label_never_hits_by_being_a_letter_of_the_gold_words():
    assert values(CHOICE, "A")["hits@1-substring"] == 0


def test_the_choice_goes_before_the_words():
    assert values(CHOICE, "river", choice="B")["accuracy"] == 1
    assert values(CHOICE, choice="b")["accuracy"] == 1
    assert values(CHOICE, "the bank", choice="A")["accuracy"] == 0


def test_choices_with_the_same_words_differ_in_accuracy_only():
    gold = GoldQuestion("q", "?", ("A",), "choice", {"A": "bank", "B": "Bank", "C": "dog"})
    scored = values(gold, choice="B")
    assert scored["accuracy"] == 0
    assert scored["exact-match"] == 1


@pytest.mark.parametrize("said", ["true", "True.", "Yes", "1"])
def test_truth_values_are_read(said):
    assert values(BOOLEAN, said)["accuracy"] == 1


@pytest.mark.parametrize("said", ["false", "no", "maybe", "true or false"])
def test_other_truth_values_are_wrong(said):
    assert values(BOOLEAN, said)["accuracy"] == 0


# Outcomes


def test_abstaining_and_failing_are_not_wrong():
    gold = open_question("x")
    assert score_question(gold, Prediction("q", ("y",))).outcome == "wrong"
    assert score_question(gold, Prediction("q", ("x",))).outcome == "right"
    abstained = Prediction("q", ("x",), status="no_answer", confidence=0.9)
    assert score_question(gold, abstained).outcome == "no_answer"
    failed = score_question(gold, Prediction("q", ("x",), status="failed"))
    assert failed.outcome == "failed"
    assert set(failed.values.values()) == {0.0}


def test_confidence_is_kept_only_with_an_answer():
    gold = open_question("x")
    assert score_question(gold, Prediction("q", ("y",), confidence=0.7)).confidence == 0.7
    assert score_question(gold, Prediction("q", (), confidence=0.7)).confidence is None


def test_why_names_what_was_compared():
    gold = open_question("Edith Venn", *"abcd", aliases={"Edith Venn": ("Mistress Venn",)})

    def why(*said):
        return score_question(gold, Prediction("q", said)).why

    assert why("edith venn") == "'edith venn' is the gold answer 'Edith Venn'"
    assert "alias of the gold answer 'Edith Venn'" in why("Mistress Venn")
    assert why("x", "y") == (
        "'x' (the first of 2 answers) is not gold: 'Edith Venn', 'a', 'b' and 2 more"
    )


def test_aliases_belong_to_a_choice_by_its_words_and_in_any_case(tmp_path):
    from nodes.question_file import question_of

    row = {"question": "Where?", "answers": ["bank"], "choices": ["bank", "lib"],
           "aliases": {"Bank": ["money house"]}}  # fmt: skip
    assert question_of(row, "x:1", fallback_id="1").aliases == {"A": ("money house",)}
    row = {"question": "Where?", "answers": ["Paris"], "aliases": {"paris": ["Lutetia"]}}
    assert question_of(row, "x:1", fallback_id="1").aliases == {"Paris": ("Lutetia",)}
