"""Where text comes from: the mirror and its damages, the hub out of reach, generated text; settings that cannot be."""

import hashlib
import json
import re
from types import SimpleNamespace

import pandas as pd
import pytest
from conftest import refused, tiny_frame
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression

from rtx_core import data
from rtx_core.data import ClassificationData, FilesData, LanguageData, config_of, corpora, sources, splits, task
from rtx_core.data.sources import content_sha256, load, resolve
from rtx_core.data.synthetic import DOMAINS, play, reviews, tales
from rtx_core.errors import RtxError

STYLES = ("phrase", "review")
CORPORA = [
    (ClassificationData(corpus="sst2"), "sst2/train"),
    (LanguageData(corpus="shakespeare"), "input.txt"),
    (LanguageData(corpus="tinystories"), "tinystories/train"),
]


@pytest.mark.parametrize("kind", ["missing", "a file", "files missing"])
@pytest.mark.parametrize(("config", "file"), CORPORA)
def test_a_wrong_rtx_data_is_one_sentence_that_names_it(kind, config, file, tmp_path, monkeypatch):
    with refused("RTX_DATA", "not set"):
        load("sst2", "mirror")
    named = tmp_path / "given"
    if kind == "a file":
        named.write_text("x")
    elif kind != "missing":
        (named / "sst2").mkdir(parents=True)
    monkeypatch.setenv("RTX_DATA", str(named))
    with refused(f"RTX_DATA names {named}", file):
        task(config, 4)


ALTERED = [lambda f: f[:-1], lambda f: f[::-1], lambda f: f.assign(label=1 - f["label"])]
DAMAGES = [(lambda f, damage=damage: damage(f).to_parquet(), ["SHA-256"]) for damage in ALTERED]
DAMAGES += [
    (lambda f: b"", []),
    (lambda f: b"sentence,label\n", []),
    (lambda f: f.to_parquet()[:-20], []),
    (lambda f: f.rename(columns={"sentence": "text"}).to_parquet(), ["['sentence']", "stanfordnlp/sst2"]),
    (lambda f: f.rename(columns={"label": "y"}).to_parquet(), ["['label']", "stanfordnlp/sst2"]),
]


@pytest.mark.parametrize(("damage", "facts"), DAMAGES)
def test_a_file_of_the_mirror_that_is_another_one_is_refused(mirror, damage, facts):
    (mirror / "sst2" / "train.parquet").write_bytes(damage(tiny_frame(30, 0)))
    with pytest.raises(RtxError, match="train") as error:
        load("sst2", "mirror")
    assert all(fact in str(error.value) for fact in facts)


def test_a_vocabulary_of_another_hash_is_refused(mirror):
    with (mirror / "bert-base-uncased" / "vocab.txt").open("a") as file:
        file.write("more\n")
    with refused("vocab.txt", "SHA-256"):
        task(ClassificationData(corpus="sst2"), 4)


def test_real_means_the_mirror_if_there_is_one_else_the_hub(monkeypatch):
    for named, source in ((None, "hub"), ("", "hub"), ("/somewhere", "mirror")):
        if named is not None:
            monkeypatch.setenv("RTX_DATA", named)
        found = [resolve(asked) for asked in ("real", "hub", "mirror", "embedded")]
        assert found == [source, "hub", "mirror", "embedded"]


@pytest.mark.parametrize("failure", [ConnectionError("no route"), ValueError("bad")])
def test_a_hub_out_of_reach_is_one_sentence_and_no_other_data(monkeypatch, failure):
    datasets = pytest.importorskip("datasets")

    def fail(name, split, revision):
        raise failure

    monkeypatch.setattr(datasets, "load_dataset", fail)
    monkeypatch.setattr(sources, "_generated", lambda corpus: pytest.fail("generated text stood in"))
    with refused("stanfordnlp/sst2", type(failure).__name__, "RTX_DATA", "embedded"):
        load("sst2", "hub")


def test_stars_of_the_hub_become_polarity_and_three_stars_are_dropped(monkeypatch):
    datasets = pytest.importorskip("datasets")
    frame = pd.DataFrame({"text": list("abcde"), "label": range(5), "idx": 0})
    asked = []

    def load_dataset(name, split, revision):
        asked.append(revision)
        return SimpleNamespace(to_pandas=lambda: frame)

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    found = load("yelp", "hub")["train"]
    assert asked == [sources.REVISIONS["Yelp/yelp_review_full"]]
    assert found.values.tolist() == [["a", 0], ["b", 0], ["d", 1], ["e", 1]] and found["label"].dtype == "int64"
    frame["label"] += 1
    with refused("has the label 5"):
        load("yelp", "hub")


def test_the_hub_is_read_at_a_commit_that_records_name():
    for name, corpus in corpora.CORPORA.items():
        members = getattr(corpus, "members", [name])
        commits = splits.facts(ClassificationData(corpus=name, source="hub"))["revision"].split(" + ")
        assert commits == [sources.REVISIONS[corpora.CORPORA[member].hub] for member in members]
        assert all(re.fullmatch("[0-9a-f]{40}", commit) for commit in commits)
        assert "revision" not in splits.facts(ClassificationData(corpus=name, source="embedded"))


def test_content_hash_is_of_the_content_and_not_of_the_file(tmp_path):
    frame = pd.DataFrame({"text": ["good , film", 'a "b"', "naïve\tπ"], "label": [1, 0, 1]})
    frame.to_csv(tmp_path / "a.csv", index=False)
    same = [frame, frame.astype({"label": "int8"}), frame.set_index(pd.Index([7, 3, 9])), frame.assign(idx=0)]
    same += [frame[["label", "text"]], pd.read_csv(tmp_path / "a.csv")]
    assert {content_sha256(f) for f in same} == {"6a80f1bdc84ee62b1adf26bb0d6b554aff5c247a85d8b7d0095dbf5f151c4b11"}
    other = [frame[::-1], frame[:2], frame.assign(label=[1, 0, 0]), frame.assign(text=["a", "b", "c"])]
    assert len({content_sha256(f) for f in [frame, *other]}) == 5


CANNOT_BE = [
    ({"corpus": "sst-2"}, "'sst2'"),
    ({"split": "seed"}, "'seeded'"),
    ({"corpus": "yelp", "split": "official"}, "seeded"),
    ({"source": "miror"}, "miror"),
    ({"fraction": 1.5}, "fraction"),
    ({"length_fraction": float("nan")}, "nan"),
    ({"max_length": 2}, "max_length"),
    ({"max_lenght": 64}, "'max_length'"),
]


@pytest.mark.parametrize("given, fact", CANNOT_BE)
def test_settings_that_cannot_be_are_one_sentence(given, fact):
    with refused(fact):
        ClassificationData(**{"corpus": "sst2"} | given)


DATA = [ClassificationData(corpus="sst2", fraction=0.1), FilesData(train="a.csv", classes=("no", "yes"), digest="0")]
DATA += [data.HopData(hops=3), data.GroupData(group="Z6"), data.FactData(keys=200)]
DATA += [
    data.TextData(train="a.txt", digest="0"),
    LanguageData(corpus="shakespeare", block_size=64),
    LanguageData(corpus="tinystories"),
]


@pytest.mark.parametrize("config", DATA, ids=lambda config: type(config).__name__)
def test_a_record_s_data_settings_come_back(config):
    assert config_of(json.loads(json.dumps(config.model_dump(mode="json") | {"source": config.source}))) == config


GOLDEN = "a83f2c902fc1 f8151d2b9a19 85262fa5a067 c237f3e70320 40e5619f1843 47bc306b667c 4db918d03392 8015ef29244f"


def test_the_same_text_on_every_machine():
    made = ["".join(reviews(domain, 100, style=style)["text"]) for domain in DOMAINS for style in STYLES]
    made += [play(5000), "".join(tales(50))]
    assert " ".join(hashlib.sha256(text.encode()).hexdigest()[:12] for text in made) == GOLDEN


def test_a_longer_text_begins_with_the_shorter_one_and_seeds_differ():
    ways = {style: lambda n, seed, style=style: reviews("product", n, seed, style)["text"].tolist() for style in STYLES}
    for name, made in (ways | {"play": lambda n, seed: play(n, seed=seed), "tales": tales}).items():
        assert made(90, 3)[:37] == made(37, 3) != made(37, 4) and len(made(37, 3)) == 37 and len(made(0, 3)) == 0, name


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("domain", DOMAINS)
def test_labels_are_balanced_and_counting_words_is_not_enough(domain, style):
    table = reviews(domain, 1500, 5, style)
    assert 0.47 < table["label"].mean() < 0.53 and table["text"].nunique() > 0.85 * len(table)
    assert not table["text"].str.contains("[{}|]").any()
    counts = CountVectorizer(token_pattern=r"\S+").fit(table["text"])
    x, y = counts.transform(table["text"]), table["label"]
    score = LogisticRegression(max_iter=500).fit(x[:1000], y[:1000]).score(x[1000:], y[1000:])
    assert 0.65 < score < 0.9
