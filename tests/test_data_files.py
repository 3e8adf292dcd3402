"""Files of one's own: every format gives the same task, and what is wrong names file, row and column."""

import hashlib
import io
import json
import re
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
from conftest import refused

import rtx_core as rtx
from rtx_core import report
from rtx_core.__main__ import main
from rtx_core.data import AlgorithmicData, FilesData, SequenceTask, from_files, task, tasks
from rtx_core.errors import RtxError
from rtx_core.experiments import configure as experiments
from rtx_core.experiments import run as runner
from rtx_core.paths import REPOSITORY
from rtx_core.report.display import escape

WORDS = ["good, film", "bad\nfilm", 'a "fine" meal', "poor", "naïve\tπ"]


def reviews(n: int = 40) -> pd.DataFrame:
    random = np.random.RandomState(0)
    texts = [f"{random.choice(WORDS)} {i}" for i in range(n)]
    return pd.DataFrame({"id": range(n), "review": texts, "stars": [[10, 2, 5][i % 3] for i in range(n)]})


def save(frame: pd.DataFrame, path) -> str:
    if path.suffix == ".jsonl":
        frame.to_json(path, orient="records", lines=True)
    elif path.suffix == ".parquet":
        frame.to_parquet(path)
    else:
        frame.to_csv(path, index=False, sep="," if path.suffix == ".csv" else "\t")
    return str(path)


def described(path, **given) -> FilesData:
    return from_files(path, text="review", label="stars", **given)


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl", ".parquet"])
def test_every_format_gives_the_same_task(tmp_path, suffix):
    found = task(described(save(reviews(), tmp_path / f"reviews{suffix}")), 8)
    assert found.classes == ("2", "5", "10") and found.model_settings == {"num_labels": 3}
    assert [found.facts[f"n_{part}"] for part in ("train", "validation", "test")] == [32, 4, 4]
    assert found.facts["name"] == f"reviews{suffix}" and found.facts["source"] == "files"
    assert found.facts["classes"] == ["2", "5", "10"] and "trained" in found.facts["vocabulary"]
    assert found.facts["sha256"] == task(described(save(reviews(), tmp_path / "other.csv")), 8).facts["sha256"]
    assert str(tmp_path) not in json.dumps(found.facts)


@pytest.mark.parametrize("taken", [";", "\t"])
def test_columns_may_be_split_at_what_a_spreadsheet_writes(tmp_path, taken, capsys):
    usual, path = described(save(reviews(), tmp_path / "usual.csv")), tmp_path / "reviews.csv"
    assert capsys.readouterr().out == ""
    reviews().rename(columns={"id": "id, of a text", "stars": " stars "}).to_csv(path, index=False, sep=taken)
    assert described(str(path)).digest == usual.digest
    assert f"split at {taken!r}" in capsys.readouterr().out


def test_an_open_quote_in_a_tsv_is_said(tmp_path, capsys):
    path = tmp_path / "quoted.tsv"
    path.write_text("review\tstars\n" + '"good\t1\nso bad\t0\nfilm" yes\t1\n' + "fine\t1\nawful\t0\n" * 15)
    described(path)
    assert "33 lines are read as 31 rows" in capsys.readouterr().out
    with refused("classes is read from the files"):
        described(path, classes=["0", "1"])


def test_an_open_quote_that_takes_rows_into_a_text_is_said(tmp_path, capsys):
    whole, rest = "text,label\n" + "fine,1\nawful,0\n" * 10, "fine,1\nawful,0\n" * 10
    for quoted in ('"so, I\nsaid, 1",1\n', '"so\nso",1\n'):  # texts of several lines
        (tmp_path / "x.csv").write_text(whole + quoted + rest)
        assert len(rtx.data.from_files(str(tmp_path / "x.csv")).classes) == 2
        assert "left open" not in capsys.readouterr().out
    (tmp_path / "x.csv").write_text(f'{whole}"so good,1\n{rest}so" bad,0\n')
    rtx.data.from_files(str(tmp_path / "x.csv"))
    assert "row 21, has a text that reads as several rows" in capsys.readouterr().out


@pytest.mark.parametrize("twin", ["caf\u00e9", "cafe\u0301 ", "CAF\u00c9", "caf\u200b\u00e9"])
def test_labels_that_look_alike_are_said(twin, tmp_path, capsys):
    lines = [f"{i} good,caf\u00e9\n{i} bad,{twin}\n{i} long,tea\n" for i in range(20)]
    (tmp_path / "x.csv").write_text("text,label\n" + "".join(lines), encoding="utf-8")
    found = rtx.data.from_files(str(tmp_path / "x.csv"))
    assert ("look alike" in capsys.readouterr().out) == (len(found.classes) == 3) == (twin != "caf\u00e9")


@pytest.mark.parametrize("name", ["~nobody-of-this-name/x", "a\0b", "x" * 300, "a/" + "x" * 300])
def test_a_name_that_no_file_has_is_one_sentence(name):
    for read in (rtx.data.from_files, rtx.data.from_text, rtx.load):
        with refused():
            read(f"{name}.csv")


def test_files_of_one_stem_have_folders_of_their_own():
    names = {
        "here/x.csv": "x",
        "x.jsonl": "x-jsonl",
        "x.tsv": "x-tsv",
        "\u0444.csv": "\u0444",
        "e\u0301.csv": "\u00e9",
        "somebody/x": "somebody-x",
        "else/x": "else-x",
    }
    assert {name: FilesData(train=name, classes=("no", "yes")).slug for name in names} == names


def test_the_seed_draws_the_parts_and_every_row_lands_in_one(tmp_path):
    path = save(reviews(), tmp_path / "reviews.csv")
    drawn = [task(described(path, seed=seed), 8) for seed in (0, 0, 1)]
    assert drawn[0].facts == drawn[1].facts != drawn[2].facts
    labels = np.concatenate([tokens.labels for tokens in drawn[0].parts.values()])
    assert np.bincount(labels).tolist() == [13, 13, 14]


def test_given_parts_are_taken_whole(tmp_path):
    path = save(reviews(), tmp_path / "train.csv")
    other = save(reviews(20), tmp_path / "other.parquet")
    other = Path(other)
    for given, sizes in (("test", [36, 4, 20]), ("validation", [36, 20, 4]), ("validation test", [40, 20, 20])):
        facts = task(described(path, **dict.fromkeys(given.split(), other)), 8).facts
        assert [facts[f"n_{part}"] for part in ("train", "validation", "test")] == sizes


TWO = [Decimal("0.00"), Decimal("1.50")]
LABELS = [(["neg", "pos"], "neg pos"), ([False, True], "False True"), ([0.0, 1.0], "0 1"), (["2", "x"], "2 x")]
LABELS += [(["a", "nan"], "a nan"), ([b"neg", "négatif".encode()], "neg négatif"), (TWO, "0 1.5")]
LABELS += [(["10", "2", "nan"], "10 2 nan"), (["01", "1"], "01 1"), (["1", "1.0", "2"], "1 1.0 2"), ([3, 20], "3 20")]


@pytest.mark.parametrize(("labels", "classes"), LABELS)
def test_labels_of_any_type_become_the_same_classes_in_any_order_of_rows(tmp_path, labels, classes):
    table = reviews(20 * len(labels)).assign(stars=pd.Series(20 * labels, dtype=object))
    table["review"] = [text.encode() for text in table["review"]] if isinstance(labels[0], bytes) else table["review"]
    for i, rows in enumerate((table, table[::-1], table.sample(frac=1, random_state=3))):
        found = described(save(rows, tmp_path / f"{i}.parquet"))
        assert found.classes == tuple(classes.split())
    assert task(found, 8).facts["n_train"] == 16 * len(labels)


@pytest.mark.parametrize(("encoding", "suffix", "line"), [("cp1252", ".csv", 14), ("utf-16", ".tsv", 1)])
def test_files_in_another_encoding_are_read_when_it_is_named(tmp_path, encoding, suffix, line):
    path, usual = tmp_path / f"reviews{suffix}", tmp_path / f"usual{suffix}"
    save(reviews().assign(review=[f"film {i}" for i in range(12)] + 28 * ["naïve"]), usual)
    path.write_bytes(usual.read_text(encoding="utf-8").encode(encoding))
    assert described(path, encoding=encoding, test=path).digest == described(usual, test=usual).digest
    with refused(path, f"line {line}", "utf-8", f"encoding='{encoding}'"):
        described(path)


def test_an_encoding_that_is_none_is_refused():
    for name in ("latin-one", "hex", "\0"):
        with refused("encoding", "cp1252"):
            described("reviews.csv", encoding=name)


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
@pytest.mark.parametrize("value", ["", " \n", None])
@pytest.mark.parametrize("column", ["review", "stars"])
def test_an_empty_cell_is_named_with_file_row_and_column(tmp_path, suffix, column, value):
    frame = reviews().astype({"review": object, "stars": object})
    frame["stars"] = frame["stars"].astype(str).astype(object)
    frame.loc[16, column] = value
    path = save(frame, tmp_path / f"reviews{suffix}")
    with refused(path, "row 17", repr(column)):
        described(path)


def test_a_label_that_training_has_not_is_named(tmp_path):
    path = save(reviews(), tmp_path / "train.csv")
    other = save(reviews().assign(stars=[10] * 39 + [3]), tmp_path / "test.csv")
    with refused("test.csv", "row 40", "'stars'", "'3'", "2, 5, 10"):
        described(path, test=other)


BAD_TABLES = [
    (b"", []),
    (b"review,stars\n", ["0 different label"]),
    (b"review,stars\na,1\nb,1,2\n", ["line 3"]),
    (b'review,stars\n"a,1\nb,2\n', []),
    (b"review,stars\na,1\n\xff\xfe,1\n", ["line 3", "utf-8", "0xff", "encoding='cp1252'"]),
    (b"text;stars\na;1\n", ["'review'", "text, stars"]),
    (b"review,stars\na,1\nb,1\n", ["'stars'", "1 "]),
    (b"review,stars\na,1,2\nb,1,2\n", ["line 2"]),
    (b"review,stars,stars\na,1,2\nb,2,1\n", ["2 columns 'stars'"]),
    (b"review, stars\n" + b"a,1\nb,2\n" * 20 + b"review,stars\n" * 3, ["row 41", "repeats the names"]),
    (b"review,stars\n" + b"".join(b"a,%d\n" % i for i in range(400)), ["400 different label", "400 rows"]),
]


NO_ROW = ["{}", '{"review": "b \\ud83d", "stars": 2}', '{"review": "b", "stars": "\\ud83d"}']
NO_LINE = [
    '{"review": "b", "stars": 2, "stars": 3}',
    "{",
    "[1]",
    '"a"',
    "{'review': 1}",
    '[{"review": "b", "stars": 2}]',
    "[" * 100_000,
]
BAD = [("reviews.csv", content, facts) for content, facts in BAD_TABLES]
for lines, facts in ((NO_ROW, ["row 2", "expected"]), (NO_LINE, ["cannot be read"])):
    BAD += [("reviews.jsonl", f'{{"review": "a", "stars": 1}}\n{line}\n'.encode(), facts) for line in lines]
BAD += [
    ("reviews.txt", b"a", [".csv", "from_text"]),
    ("bad.parquet", b"PAR1", []),
    ("none.csv", None, [".csv"]),
    ("", None, []),
]


@pytest.mark.parametrize(("name", "content", "facts"), BAD)
def test_what_cannot_be_read_is_one_sentence(tmp_path, name, content, facts):
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    with refused(path, *facts):
        described(str(path))


def test_too_few_rows_too_many_classes_and_one_column_twice_are_refused(tmp_path):
    few, many = save(reviews(9), tmp_path / "few.csv"), save(reviews(2000), tmp_path / "many.csv")
    for path, label, facts in ((few, "stars", ["9 rows"]), (many, "id", ["'id'", "2,000"]), (many, "review", [])):
        with refused(*facts):
            from_files(path, text="review", label=label)


def test_a_name_that_is_no_file_is_asked_of_the_hub(monkeypatch):
    datasets = pytest.importorskip("datasets")
    asked = []

    def load_dataset(name, split, revision):
        asked.append((name, split, revision))
        if name == "somebody/none":
            raise ConnectionError("no route")
        return SimpleNamespace(to_pandas=reviews)

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    assert task(described("somebody/reviews", test="somebody/reviews:test"), 8).facts["n_test"] == 40
    assert set(asked) == {("somebody/reviews", "train", None), ("somebody/reviews", "test", None)}
    with refused("somebody/none", "ConnectionError"):
        described("somebody/none")


def test_files_of_ones_own_train_in_the_same_way(home, small_models, monkeypatch):
    rows = [f"{'a lovely' if i % 2 else 'a dreadful'} film number {i},{'good' if i % 2 else 'bad'}" for i in range(60)]
    file = home / "My Reviews.csv"
    file.write_text("\n".join(["review,stars", *rows]))
    files = described(str(file))
    given = {"models": ["recurrent"], "seeds": [0], "epochs": 1, "batch_size": 8}
    (record,) = rtx.runs(files, **given).records
    assert (record["experiment"], record["name"]) == ("own-data", "own-my-reviews-epochs1-batchsize8")
    assert (record["data"]["source"], record["budget"]) == ("files", "full")
    assert record.path.is_relative_to(home / "runs") and not (home / "results").exists()
    monkeypatch.setattr(runner, "train_and_record", lambda *_, **__: pytest.fail("nothing is to be made here"))
    assert rtx.runs(files, **given).records[0].content == record.content
    answers = rtx.load("own-my-reviews-epochs1-batchsize8/recurrent-seed0").classify("a lovely film")
    assert list(answers)[2:] == ["bad", "good"]
    elsewhere = home / "elsewhere" / file.name
    elsewhere.parent.mkdir()
    file.rename(elsewhere)  # the same texts are the same data
    moved = described(str(elsewhere))
    assert rtx.runs(moved, **given).records[0].content == record.content
    elsewhere.write_text("\n".join(["review,stars", *rows[:50]]))
    for fewer, said in ((moved, "call that again"), (described(str(elsewhere)), "made of other texts")):
        with pytest.raises(RtxError, match=said):
            rtx.runs(fewer, **given)
    named = described(str(elsewhere), name="Fewer reviews")
    assert experiments.configure(named, "recurrent").name == "own-fewer-reviews"


CLASSES = ["label", "passes", "model", "text", "Model", "Passes", "Label", "Text", "p(text)", "<b>`$"]


def test_classes_may_have_any_name_and_lines_are_answered_as_they_come(home, small_models, monkeypatch, capsys):
    rows = [f"a film {i},{name}" for i, name in enumerate(10 * CLASSES)]
    (home / "named.csv").write_text("\n".join(["review,stars", *rows]))
    files, question = described(home / "named.csv"), "a text of | $x$ and {val}`a` "
    runs = rtx.runs(files, models=["recurrent"], epochs=1, batch_size=64)
    answers = rtx.load(runs[0]).classify([question], passes=True)
    assert list(answers) == ["text", "passes", "label", *(f"p({name})" for name in files.classes)]
    page = json.loads((REPOSITORY / "notebooks/own-data.ipynb").read_text())
    (cell,) = [source for each in page["cells"] if "classify(" in (source := "".join(each["source"]))]
    known = {"rtx": rtx, "pd": pd, "report": report, "runs": runs, "texts": files, "question": question}
    exec(cell.replace("report.table(", "shown = report.table("), known)
    head, _, *lines = [line for line in known["shown"].markdown.splitlines() if line.startswith("|")]
    assert len(lines) == 2 and all(line.endswith(f"| {escape(question)} |") for line in lines)
    assert sorted(head.split(" | ")[3:-1]) == sorted(escape(f"p({name})") for name in CLASSES)

    texts, said = [f"{'a long film ' * (i % 7)}number {i}" for i in range(600)], []

    def lines() -> Iterator[bytes]:
        for i, text in enumerate(texts):
            if i == 300:
                said.append(capsys.readouterr().out)
            yield f" {text}\r\n".encode()
            yield b" \n"
        yield b"na\xefve\n"

    capsys.readouterr()
    words = ["rtx", "classify", runs[0].record["name"], "recurrent"]
    monkeypatch.setattr("sys.argv", words)
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=lines()))
    with pytest.raises(SystemExit, match="Line 1,201 of standard input is not UTF-8"):
        main()
    assert said[0].count("\n") == 257
    found = pd.read_csv(io.StringIO(said[0] + capsys.readouterr().out), sep="\t")
    expected = rtx.load(runs[0]).classify(texts[: len(found)])
    assert len(found) == 512 and list(found["text"]) == list(expected["text"])
    assert np.allclose(found["p(text)"], expected["p(text)"], atol=1e-4) and list(found)[0] == "label"
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=iter([b"\n"])))
    with pytest.raises(SystemExit, match="No text was given"):
        main()


TINY = {"hidden_size": 16, "num_heads": 2, "intermediate_size": 32, "num_layers": 1, "steps": 2, "batch_size": 4}


def typed(monkeypatch, *words: object) -> None:
    monkeypatch.setattr("sys.argv", ["rtx", *map(str, words)])
    main()


@pytest.mark.parametrize("end", ["\r\n", " "])
def test_a_text_is_split_by_position_and_trains_a_decoder_from_the_command_line(
    home, small_models, monkeypatch, capsys, end
):
    text = "".join(f"line {i} of a bok{end}" for i in range(200))
    (home / "book.txt").write_bytes(("\ufeff" + text).encode("utf-16"))
    monkeypatch.chdir(home)
    sizes = [f"{name}={value}" for name, value in (TINY | {"block_size": 16, "eval_batches": 2}).items()]
    typed(monkeypatch, "run", "book.txt", "gpt", "encoding=utf-16", "name=007", *sizes)
    ((path,),) = [[*home.glob("*/own-007-*/gpt-seed0.json")]]
    record = rtx.records.read(path)
    assert record["data"]["source"] == "files" and len(record["samples"][0]["text"]) == 20
    capsys.readouterr()
    typed(monkeypatch, "settings", "book.txt", "gpt", "encoding=utf-16")
    assert re.search(r"block_size .* 128 .*\n", capsys.readouterr().out)
    config = rtx.data.from_text("book.txt", encoding="utf-16", block_size=16)
    found, lines = task(config, 4), text.replace("\r\n", "\n")
    parts = [found.decode(found.parts[part]) for part in ("train", "validation", "test")]
    assert "".join(parts) == lines and [len(part) * 10 // len(lines) for part in parts] == [8, 1, 1]
    inputs = "".join(found.decode(ids.flatten()) for ids, _ in found.test_batches())
    assert parts[2].startswith(inputs) and record["test"]["n"] == len(parts[2]) - 1
    assert (record["data"]["n_test"], record["data"]["test_is_validation"]) == (len(parts[2]), False)
    assert config.command_words == [] and config.replace(block_size=128).command_words == [
        "book.txt",
        "encoding=utf-16",
    ]
    Path("book.txt").write_text("another text" * 100, encoding="utf-16")
    with refused("from_text", "again"):
        rtx.run(config, "gpt")
    for name, facts in (("none.txt", ["cannot be read"]), ("book.txt", ["line 1", "encoding='utf-16'"])):
        with refused(name, *facts):
            rtx.data.from_text(name)
    with refused("block_size", "validation"):
        task(rtx.data.from_text("book.txt", encoding="utf-16", block_size=500), 4)


def test_a_table_trains_from_the_command_line(home, small_models, monkeypatch, capsys):
    table = reviews().rename(columns={"review": "yes", "stars": "1"})
    save(table.assign(**{"1": 20 * ["07", "7"]}), home / "reviews.tsv")
    typed(monkeypatch, "run", home / "reviews.tsv", "recurrent", "text=yes", "label=1", "epochs=1")
    (path,) = home.glob("*/own-reviews-tsv-epochs1/recurrent-seed0.json")
    assert rtx.records.read(path)["data"]["classes"] == ["07", "7"]
    config = from_files(home / "reviews.tsv", text="yes", label="1")
    assert config.command_words == [str(home / "reviews.tsv"), "text=yes", "label=1"]
    assert config.replace(seed=1).command_words == []
    with pytest.raises(SystemExit, match="has no column 'text'"):
        typed(monkeypatch, "run", home / "reviews.tsv", "recurrent", "label=1")


class Reverse(SequenceTask):
    """Letters, a mark, and the letters again from the last to the first."""

    vocab_size = 11
    by = "place"
    letters: int = 4
    shift: int = 0

    @property
    def parts(self):
        return [*range(self.letters - 1), "first"]

    def draw(self, random, n):
        letters = random.randint(10, size=(n, self.letters))
        mark, none = np.full((n, 1), 10), np.full_like(letters, -100)
        answers = (letters[:, ::-1] + self.shift) % 10
        return np.hstack((letters, mark, answers[:, :-1])), np.hstack((none, answers))

    def part_of(self, inputs):
        return (torch.arange(inputs.shape[1])[None] - self.letters).clamp(min=0)


def test_a_task_of_ones_own_trains_and_each_part_s_error_is_a_column(home, small_models, monkeypatch):
    given = TINY | {"test_texts": 16, "eval_texts": 8}
    found = rtx.runs(Reverse(shift=1), models=["gpt", "looped"], letters=[2, 3], **given)
    record = found.records[0]
    assert record["name"].startswith("own-reverse-shift1-evaltexts8") and record["data"]["name"] == "Reverse"
    table = rtx.results("own-data", letters=3)
    errors = [f"error_place_{place}" for place in (0, 1, "first")]
    assert len(table) == 2 and table[errors].mean(axis=1).round(9).equals((1 - table["accuracy"]).round(9))
    assert rtx.results()["error_place_1"].isna().sum() == 2
    monkeypatch.setattr(runner, "train_and_record", lambda *_, **__: pytest.fail("nothing is to be made here"))
    again = rtx.runs(Reverse(shift=1), models=["gpt"], letters=[2, 3], **given)
    assert [record.content for record in again.records] == [record.content for record in found.records[::2]]
    draw = Reverse.draw
    monkeypatch.setattr(Reverse, "draw", lambda self, random, n: [x[::-1].copy() for x in draw(self, random, n)])
    with pytest.raises(RtxError, match="made of other"):
        rtx.run(Reverse(shift=1), "gpt", letters=2, **given)


WRONG_DRAWS = [
    (lambda x: (x, x[:, :1]), "expected (2, N) of both"),
    (lambda x: (x[:1], x[:1]), "expected (2, N) of both"),
    (lambda x: (x + 9, x), "gave inputs of int64 from 9 to"),
    (lambda x: (x, x - 1), "gave targets of int64 from -1"),
    (lambda x: (x, x / 2), "gave targets of float64"),
    (lambda x: (x, 0 * x - 100), "no target but"),
]


@pytest.mark.parametrize(("change", "said"), WRONG_DRAWS)
def test_examples_that_cannot_be_are_one_sentence(monkeypatch, change, said):
    monkeypatch.setattr(Reverse, "draw", lambda self, random, n: change(random.randint(3, size=(n, 5))))
    with refused("Reverse.draw", said):
        task(Reverse(), 4)


BAD_PARTS = [
    {"by": "error"},
    {"by": ""},
    *({"parts": parts} for parts in ([], [0.5], [-1, 2], ["a", "a"], ["1", 1], [""], [True])),
]
BAD_PARTS += [{"part_of": lambda self, inputs: inputs}]


@pytest.mark.parametrize("wrong", BAD_PARTS)
def test_parts_that_no_record_can_hold_are_refused_before_training(monkeypatch, wrong):
    for name, value in wrong.items():
        monkeypatch.setattr(Reverse, name, value)
    with refused("Reverse", "expected", "parts"):
        task(Reverse(), 4)


BROKEN_TASKS = [("draw", lambda self, random, n: None), ("draw", lambda self, random, n: self.word)]
BROKEN_TASKS += [("part_of", lambda self, inputs: inputs / 0), ("part_of", lambda self, inputs: torch.zeros(1, 1))]
BROKEN_TASKS += [("vocab_size", "ten"), ("task_class", "nowhere:Task")]


@pytest.mark.parametrize(("name", "wrong"), BROKEN_TASKS)
def test_a_task_that_fails_is_one_sentence_before_training(monkeypatch, name, wrong):
    monkeypatch.setattr(Reverse, name, wrong)
    with refused("Reverse"):
        task(Reverse(), 4)


class Turned(Reverse):
    way: object = "left"


class Wide(Turned):
    hidden_size: int = 3


@pytest.mark.parametrize("way", ["a/b", "../../../x", "a\0b", "a\nb", "*[a]?", "ä é"])
def test_text_in_a_setting_names_a_folder_inside_that_of_the_records(home, small_models, way):
    given = TINY | {"test_texts": 16, "eval_texts": 8}
    record = rtx.run(Turned(way=way), "gpt", **given).record
    assert record.path.parents[2] == home and record["name"].isprintable() and record["config"]["data"]["way"] == way
    assert len(rtx.results(record["name"])) == 1
    assert not [path for path in home.parent.iterdir() if "x-" in path.name]


@pytest.mark.parametrize("way", [max, np.inf, np.zeros(2), {"a": {1, 2}}, "\ud800"])
def test_a_setting_that_no_record_can_hold_is_refused_before_training(way):
    with refused("Turned"):
        experiments.configure(Turned(way=way), "gpt")


def test_a_setting_of_data_and_model_is_refused_where_it_is_given():
    assert experiments.configure(Wide(), "gpt").data.hidden_size == 3
    with refused("hidden_size", "otherwise"):
        experiments.configure(Wide(), "gpt", hidden_size=16)
    with refused("epochs is 2", "steps alone"):
        experiments.configure(Turned(), "gpt", epochs=2)
    with refused("Turned does not change", "letters"):
        Turned().letters = 3


def test_what_is_no_data_of_ones_own_is_one_sentence():
    class Steps(Reverse):
        steps: int = 3

    class Error(Reverse):
        n_test: int = 3

    facts = {"Reverse()": Reverse, "'steps'": Steps(), "'n_test'": Error(), "experiment": Reverse.draw}
    for fact, wrong in facts.items():
        with refused(fact):
            rtx.run(wrong, "gpt")


class Doubling(tasks.Task):
    """The documented methods alone: a token is followed by its double, of ten."""

    unit, block_size, model_settings = "tokens", 4, {"vocab_size": 10}

    def __init__(self, config, batch_size, micro_batches):
        super().__init__(batch_size, micro_batches)
        sha256 = hashlib.sha256(b"doubling").hexdigest()
        self.facts = {"name": "doubling", "source": config.source, "sha256": sha256, "n_train": 0, "n_test": 32}

    def step(self, seed, i):
        inputs = torch.from_numpy(np.random.RandomState([seed, i]).randint(10, size=(self.batch_size, 4)))
        return [(inputs, 2 * inputs % 10)]

    def examples(self, i):
        return 4 * self.batch_size

    def loss(self, model, inputs, targets, of):
        loss = model(inputs, targets)
        return loss, (loss.detach() * of).double().reshape(1)

    def losses(self, model, device):
        with tasks.evaluation_mode(model):
            found = [model(x.to(device), y.to(device)).double().cpu() for i in range(2) for x, y in self.step(1, i)]
        return torch.stack(found), torch.tensor([self.examples(i) for i in range(2)]).double()

    def evaluate(self, model, device, autocast):
        return {"validation_loss": self.losses(model, device)[0].mean().item()}

    def test(self, model, device, autocast):
        return tasks.test_entry(*self.losses(model, device)), None


class DoublingData(AlgorithmicData):
    task_class = Doubling
    train_defaults = {"epochs": 0, "steps": 2, "eval_every": 1}


def test_the_documented_methods_of_a_task_are_all_that_a_run_needs(home, small_models):
    found = rtx.run(DoublingData(), "gpt", num_layers=1)
    assert found.record["name"] == "own-doubling-numlayers1" and found.record["test"]["n"] == 128
    assert rtx.run(DoublingData(), "gpt", num_layers=1).record.content == found.record.content


def of(value):
    return lambda *_: value


BROKEN_METHODS = [
    {"test": of(None)},
    {"test": of({"loss": 1.0})},
    {"test": of(({"loss": 1.0}, None))},
    {"test": lambda self, *_: self.tested},
    {"evaluate": of(None)},
    {"evaluate": of({"loss": 1.0})},
    {"evaluate": of({"validation_loss": torch.tensor(1.0)})},
    {"loss": lambda self, model, inputs, targets, of: model(inputs, targets)},
    {"loss": lambda self, model, inputs, targets, of: (model(inputs, targets).detach(), torch.zeros(1))},
    {"step": of([])},
    {"unit": property(lambda self: self.units)},
    {"block_size": property(lambda self: self.blocks)},
    {"facts": property(lambda self: {}, lambda *_: None)},
    {"facts": property(of({"name": "x", "source": "generated", "sha256": "0", "n_train": 1}), lambda *_: None)},
    {"summary": of({"train_loss": np.int64(1)})},
]


@pytest.mark.parametrize("wrong", BROKEN_METHODS)
def test_a_method_that_fails_is_one_sentence_before_training(home, small_models, monkeypatch, wrong):
    for name, value in wrong.items():
        monkeypatch.setattr(Doubling, name, value, raising=False)
    monkeypatch.setattr("rtx_core.train.trainer.train", lambda *_, **__: pytest.fail("nothing is to be trained here"))
    with refused("The task Doubling fails in a trial"):
        rtx.run(DoublingData(), "gpt", num_layers=1)
