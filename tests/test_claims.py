"""The claims page: verdicts follow the records, and change with them."""

import hashlib
import importlib.util

import pytest
from factory import content, markdown, plain, saved

import rtx_core as rtx
from rtx_core.pages import claims, judges, verdicts
from rtx_core.pages.verdicts import CONTRADICTED, MISSING, ONE_SEED, REDUCED, REPRODUCED
from rtx_core.parameters import CLASSIFIERS
from rtx_core.paths import REPOSITORY
from rtx_core.results.statistics import same_share
from rtx_core.tasks import TASKS, task

ALL = [claim for section in claims.claims().values() for claim in section]
BOTH = f"{ONE_SEED}, {REDUCED}"


def pair(wrong_baseline, wrong_recurrent, variant: str = "sst2", seed: int = 0, budget: dict | None = None, **changes) -> list:
    """A record of each model on a task; the test texts are the same in all tasks, the training texts are not."""
    asked = task(variant).but(**(budget or {}))
    changes = {"data": content(asked)["data"] | {"sha256": hashlib.sha256(variant.encode()).hexdigest()}} | changes
    return [saved(asked, model, seed, wrong, **changes) for model, wrong in (("baseline", wrong_baseline), ("recurrent", wrong_recurrent))]


# -- the page ----------------------------------------------------------------------------------------------------------


def test_every_claim_is_complete_and_without_records_nothing_fails(home):
    for claim in ALL:
        assert set(claim) - {"printed"} == {"says", "source", "page", "judge"} and claim["says"].endswith(".") and claims.link(claim["page"])
        _, terms = claim["judge"]
        tasks = {terms[name] for name in ("variant", "subset", "full", "small", "large", "than", "tested") if name in terms}
        assert tasks | set(terms.get("variants", ())) | set(terms.get("trained", ())) <= set(TASKS)
        assert {terms[name] for name in ("first", "second", "model") if name in terms} | set(terms.get("models", ())) <= set(CLASSIFIERS)
        for data in (terms[name] for name in ("data", "like") if name in terms):
            assert (REPOSITORY / "results" / "data" / f"{data}.json").exists(), data
        verdict = claims.judge(claim)
        assert verdict.word in verdicts.VERDICTS and verdict.statistic.endswith(".") and verdict.at == ""
    needing_records = [claim for claim in ALL if claim["judge"][0] in vars(judges)]
    assert needing_records and all(claims.judge(claim).word == MISSING for claim in needing_records)


def test_tasks_are_named_as_their_records():
    assert {name: task(name).variant for name in TASKS} == {name: name for name in TASKS}


def test_the_page_changes_when_a_record_changes():
    pair(range(40), range(5))
    before = markdown(claims.section("SST-2")), markdown(claims.summary(label="tab-claims"))
    assert judges.more("sst2", "recurrent", "baseline").word == REPRODUCED
    pair(range(5), range(40))
    after = markdown(claims.section("SST-2")), markdown(claims.summary(label="tab-claims"))
    assert before[0] != after[0] and before[1] != after[1]
    assert judges.more("sst2", "recurrent", "baseline").word == CONTRADICTED
    assert "\n: **Contradicted (one seed).** SST-2, pooled split, accuracy, Recurrent minus Baseline: -17.50 points" in after[0]


def test_links_lead_to_pages_of_the_book_and_unknown_sections_are_refused():
    assert claims.link("sst2") == " [](notebooks/sst2.ipynb)" and claims.link("architectures") == " [](architectures.md)"
    assert claims.link("nowhere") == ""
    with pytest.raises(rtx.RtxError, match="Unknown section of claims 'sst2'"):
        claims.section("sst2")


def test_the_page_depends_on_all_that_it_reads(home):
    """By the rule of the book's extension, every folder of results/ that a verdict may come from."""
    spec = importlib.util.spec_from_file_location("paper", REPOSITORY / "book/_ext/paper.py")
    paper = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(paper)
    page = REPOSITORY / "book" / "claims.md"
    files = [home / "results" / name / "a.json" for name in (*TASKS, "yelp-trainrows10000-epochs1", "data", "transfer/x", "rounding/x", "yardstick/x")]
    for file in files:
        file.parent.mkdir(parents=True)
        file.write_text("{}")
    assert set(files) <= set(paper.inputs(page, page.read_text()))


def test_differences_in_print_are_computed():
    said = plain(markdown(claims.in_print(label="tab-print")))
    p = same_share(689, 872, 697, 872)
    assert f"| SST-2, GLUE's own split | 872 | 0.7901 | 0.7993 | +0.92 | {p:.2g} |" in said
    assert sum(line.startswith("| ") for line in said.splitlines()) == 2 + sum(claim["judge"][0] == "published" and claim.get("printed", True) for claim in ALL) == 9


def test_single_seeds_are_told_beside_the_test_over_all():
    said = "not measured yet: no comparison has three seeds"
    for seed, (baseline, recurrent) in enumerate(((range(60), range(10)), (range(10), range(60)), (range(40), range(40)))):
        assert said in markdown(rtx.claims.single_seeds())
        pair(baseline, recurrent, seed=seed)
    told = plain(markdown(rtx.claims.single_seeds()))
    assert "SST-2, pooled split, -25.00 points (p = 1.8e-15), +25.00 points (p = 1.8e-15), +0.00 points (p = 1); over seeds +0.00 points" in told
    assert "In 1 of the 1 single seeds decide for either side." in told
    pair(range(40), range(40), seed=1)
    assert "either side" not in markdown(rtx.claims.single_seeds())
