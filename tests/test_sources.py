"""Where text comes from: the mirror and its damages, the hub out of reach, the embedded text, content hashes."""

import pandas as pd
import pytest
from mirror import changed_label, one_sentence, tiny_frame

from rtx_core.corpora import sources
from rtx_core.corpora.dataset import dataset
from rtx_core.corpora.sources import content_sha256, load, resolve
from rtx_core.errors import RtxError


# --- The mirror -------------------------------------------------------------------------------------------------------

def test_the_mirror_gives_the_hub_s_rows_as_text_and_label(mirror):
    loaded = load("sst2", "mirror")
    assert list(loaded) == ["train", "validation"]
    for seed, frame in enumerate(loaded.values()):
        assert list(frame.columns) == ["text", "label"]
        expected = tiny_frame(30 - 20 * seed, seed)
        assert frame["text"].tolist() == expected["sentence"].tolist() and frame["label"].tolist() == expected["label"].tolist()


def test_a_mirror_that_is_not_set_is_one_sentence():
    with pytest.raises(RtxError) as error:
        load("sst2", "mirror")
    one_sentence(error, "needs the variable RTX_DATA, which is not set")


def test_a_missing_mirror_file_is_named(mirror):
    (mirror / "sst2" / "validation.parquet").unlink()
    with pytest.raises(RtxError) as error:
        load("sst2", "mirror")
    one_sentence(error, "no file sst2/validation.parquet")


def changed_text(frame):
    frame.loc[3, "sentence"] += "x"
    return frame


@pytest.mark.parametrize("damage", [changed_text, changed_label, lambda f: f[:-1], lambda f: f[::-1], lambda f: f[:0]])
def test_changed_content_is_refused(mirror, damage):
    damage(tiny_frame(30, 0)).to_parquet(mirror / "sst2" / "train.parquet")
    with pytest.raises(RtxError) as error:
        load("sst2", "mirror")
    one_sentence(error, "The mirror's sst2/train.parquet has content hash", "fetch it again")


@pytest.mark.parametrize("damage", [lambda c: b"", lambda c: b"sentence,label\n", lambda c: c[:-20]])
def test_an_unreadable_mirror_file_is_one_sentence(mirror, damage):
    path = mirror / "sst2" / "train.parquet"
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(RtxError) as error:
        load("sst2", "mirror")
    one_sentence(error, "train.parquet", "no readable parquet file")


@pytest.mark.parametrize("rename, lacking", [({"sentence": "text"}, "['sentence']"), ({"label": "y"}, "['label']"), ({"sentence": "s", "label": "y"}, "['label', 'sentence']")])
def test_other_columns_than_the_hub_s_are_refused(mirror, rename, lacking):
    tiny_frame(30, 0).rename(columns=rename).to_parquet(mirror / "sst2" / "train.parquet")
    with pytest.raises(RtxError) as error:
        load("sst2", "mirror")
    one_sentence(error, f"lacks {lacking}", "mirror stanfordnlp/sst2 train")


@pytest.mark.parametrize("label", [-1, 2])
def test_a_label_out_of_range_is_named_with_its_row(mirror, label):
    frame = tiny_frame(30, 0)
    frame.loc[17, "label"] = label
    frame.to_parquet(mirror / "sst2" / "train.parquet")
    with pytest.raises(RtxError) as error:
        load("sst2", "mirror")
    one_sentence(error, f"has label {label} in row 17; labels are 0 to 1")


def test_a_home_directory_in_the_mirror_s_name_is_expanded(mirror, monkeypatch):
    monkeypatch.setenv("HOME", str(mirror.parent))
    monkeypatch.setenv("RTX_DATA", "~/mirror")
    assert len(load("sst2", "mirror")["train"]) == 30


# --- Which source, and the others -------------------------------------------------------------------------------------

def test_real_means_the_mirror_if_there_is_one_else_the_hub(monkeypatch):
    assert resolve("real") == "hub"
    monkeypatch.setenv("RTX_DATA", "")
    assert resolve("real") == "hub"
    monkeypatch.setenv("RTX_DATA", "/somewhere")
    assert resolve("real") == "mirror"
    assert [resolve(s) for s in ("hub", "mirror", "embedded")] == ["hub", "mirror", "embedded"]


def test_unknown_sources_and_corpora_get_the_nearest_name():
    with pytest.raises(RtxError, match="Unknown source 'miror': did you mean 'mirror'\\?"):
        resolve("miror")
    with pytest.raises(RtxError, match="Unknown corpus 'sst-2': did you mean 'sst2'\\?"):
        load("sst-2", "embedded")


def test_a_source_is_resolved_or_refused_wherever_it_is_named(mirror):
    assert load("sst2", "real").keys() == load("sst2", "mirror").keys()
    assert dataset("sst2", "real", "seeded", 16).facts == dataset("sst2", "mirror", "seeded", 16).facts
    for use in (lambda: load("sst2", "mirrror"), lambda: dataset("sst2", "mirrror", "seeded", 16)):
        with pytest.raises(RtxError, match="Unknown source 'mirrror': did you mean 'mirror'"):
            use()


@pytest.mark.parametrize("failure", [ConnectionError("no route"), TimeoutError(), FileNotFoundError("not cached"), ValueError("bad answer")])
def test_a_hub_out_of_reach_is_one_sentence_and_no_other_data(monkeypatch, failure):
    datasets = pytest.importorskip("datasets")
    asked = []

    def fail(name, split):
        asked.append((name, split))
        raise failure

    monkeypatch.setattr(datasets, "load_dataset", fail)
    monkeypatch.setattr(sources, "_embedded", lambda corpus: pytest.fail("embedded text stood in for real text"))
    monkeypatch.setattr(sources, "_from_mirror", lambda *_: pytest.fail("the mirror stood in for the hub"))
    with pytest.raises(RtxError) as error:
        dataset("sst2", "hub", "seeded", 16)
    one_sentence(error, "stanfordnlp/sst2 (train)", type(failure).__name__, "RTX_DATA", "source='embedded'")
    assert asked == [("stanfordnlp/sst2", "train")] and error.value.__cause__ is failure


class FromTheHub:
    """What `datasets.load_dataset` returns, as far as it is used: SST-2 on the hub has a column `idx` too."""

    def __init__(self, frame):
        self.frame = frame.assign(idx=range(len(frame)))

    def to_pandas(self):
        return self.frame


def test_hub_and_mirror_give_the_same_tables(mirror, monkeypatch):
    datasets = pytest.importorskip("datasets")
    parts = {"train": tiny_frame(30, 0), "validation": tiny_frame(10, 1)}
    monkeypatch.setattr(datasets, "load_dataset", lambda name, split: FromTheHub(parts[split]))
    from_hub, from_mirror = load("sst2", "hub"), load("sst2", "mirror")
    assert {k: v.values.tolist() for k, v in from_hub.items()} == {k: v.values.tolist() for k, v in from_mirror.items()}


def test_content_hash_is_of_the_content_and_not_of_the_file(tmp_path):
    frame = pd.DataFrame({"text": ["good , film", 'a "b"', "naïve\tπ"], "label": [1, 0, 1]})
    frame.to_parquet(tmp_path / "a.parquet", compression="gzip")
    frame.to_csv(tmp_path / "a.csv", index=False)
    frame.to_json(tmp_path / "a.jsonl", orient="records", lines=True)
    read = [
        frame, frame.astype({"label": "int8"}), frame.set_index(pd.Index([7, 3, 9])), frame[["label", "text"]], frame.assign(idx=0),
        pd.read_parquet(tmp_path / "a.parquet"), pd.read_csv(tmp_path / "a.csv"), pd.read_json(tmp_path / "a.jsonl", lines=True),
    ]  # fmt: skip
    assert {content_sha256(f) for f in read} == {"6a80f1bdc84ee62b1adf26bb0d6b554aff5c247a85d8b7d0095dbf5f151c4b11"}
    other = [frame[::-1], frame[:2], frame.assign(label=[1, 0, 0]), frame.assign(text=["good , film", 'a "b"', "naïve π"])]
    assert len({content_sha256(f) for f in [frame, *other]}) == 5


def test_embedded_text_is_cut_from_one_table_without_overlap():
    loaded = load("sst2", "embedded")
    assert {name: len(frame) for name, frame in loaded.items()} == {"train": 5000, "validation": 500}
    whole = sources.embedded.reviews("movie", 5500, seed=0, style="phrase")
    assert pd.concat(loaded.values())["text"].tolist() == whole["text"].tolist()
