"""The folder to deposit: its metadata say what lies in it, and its logbook has the words of every prediction."""

import hashlib
import importlib.util

from rtx_core.paths import REPOSITORY
from study.predictions import predictions

SPEC = importlib.util.spec_from_file_location("bundle", REPOSITORY / "workflow" / "bundle.py")
bundle = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(bundle)


def test_the_metadata_describe_what_is_there(tmp_path):
    (tmp_path / "claims.csv").write_bytes(b"statement,outcome\n")
    (tmp_path / "other").write_bytes(b"")
    graph = {entry["@id"]: entry for entry in bundle.crate(tmp_path, "abc", "2026-11-27")["@graph"]}
    assert graph.keys() == {"ro-crate-metadata.json", "./", "claims.csv"}
    assert graph["ro-crate-metadata.json"]["about"] == {"@id": "./"}
    assert graph["./"]["hasPart"] == [{"@id": "claims.csv"}] and graph["./"]["version"] == "abc"
    assert graph["claims.csv"]["sha256"] == hashlib.sha256(b"statement,outcome\n").hexdigest()
    assert graph["claims.csv"]["contentSize"] == "18"


def test_the_logbook_has_every_prediction_in_its_own_words(home):
    rows = predictions()
    text = bundle.logbook(rows.values())
    assert text.count("\n## ") == len(rows) and "not measured yet" in text  # there are no records here
    for prediction in rows.values():
        assert " ".join(prediction.row["says"].split()) in text
