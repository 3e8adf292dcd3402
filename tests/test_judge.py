"""The judge, against a local server that speaks the protocol and misbehaves, and the page that shows what it gave."""

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace

import pytest
from factory import markdown, plain
from openai import _base_client, _constants

from rtx_core.errors import RtxError
from rtx_core.evaluation import judge as module
from rtx_core.evaluation.judge import CRITERIA, Judge, as_graded, scores
from rtx_core.language import settings as language_settings
from rtx_core.pages import story_texts
from rtx_core.pages.runs import Runs
from rtx_core.results import measurement
from rtx_core.results.record import Record

KEY = "sk-very-secret-0123456789"
GOOD = {"grammar": 7, "creativity": 6, "consistency": 5, "plot": 4}


class Server(ThreadingHTTPServer):
    """Answers each request with the next of `replies`: (status, content of the answer or a raw body, seconds to wait)."""

    daemon_threads = True

    def __init__(self, replies):
        super().__init__(("127.0.0.1", 0), Handler)
        self.replies, self.asked = list(replies), []


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append(({name.lower(): value for name, value in self.headers.items()}, request))
        status, content, wait = self.server.replies.pop(0)
        time.sleep(wait)
        if isinstance(content, bytes):
            body = content
        elif status != 200:
            body = json.dumps({"error": {"message": f"no: {self.headers['Authorization']}"}}).encode()
        else:
            message = {"role": "assistant", "content": content if isinstance(content, str) or content is None else json.dumps(content)}
            body = json.dumps({"id": "1", "object": "chat.completion", "created": 0, "model": "m",
                               "choices": [{"index": 0, "finish_reason": "stop", "message": message}]}).encode()  # fmt: skip
        try:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
        except OSError:  # the client gave up waiting
            pass

    def log_message(self, *args):
        pass


@pytest.fixture
def serve(monkeypatch):
    monkeypatch.setattr("openai._base_client.INITIAL_RETRY_DELAY", 0.01)
    monkeypatch.setattr("openai._base_client.MAX_RETRY_DELAY", 0.02)
    running = []

    def start(*replies) -> tuple[Judge, Server]:
        server = Server([(200, reply, 0) if not isinstance(reply, tuple) else reply for reply in replies])
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        running.append(server)
        return Judge(KEY, f"http://127.0.0.1:{server.server_address[1]}/v1", "m"), server

    yield start
    for server in running:
        server.shutdown()
        server.server_close()


BAD = [
    "", "no JSON", "{", "[]", "7", "null", "[7, 7, 7, 7]", '{"grammar": 7}', json.dumps(GOOD | {"plot": 11}), json.dumps(GOOD | {"plot": 0}),
    json.dumps(GOOD | {"plot": -3}), json.dumps(GOOD | {"plot": 9.5}), json.dumps(GOOD | {"plot": "10"}), json.dumps(GOOD | {"plot": True}),
    json.dumps(GOOD | {"plot": None}), json.dumps(GOOD | {"bonus": 10}), json.dumps(GOOD)[:-1] + ', "plot": 1e400}', "[" * 100_000,
    json.dumps(GOOD) + json.dumps(GOOD), json.dumps({name.upper(): 10 for name in CRITERIA}), '{"plot": NaN}', "\x00", json.dumps([GOOD]),
    '{"grammar": 2, "creativity": 6, "consistency": 5, "plot": 4, "grammar": 10}', '{"plot": 4, ' + json.dumps(GOOD)[1:],
    *(text % json.dumps(GOOD) for text in ("Here:\n```json\n%s\n```", "```json\n%s\n```\nGood!", "```\n```json\n%s\n```\n```")),
    *(text % json.dumps(GOOD) for text in ("```json\n%s", "%s\n```", "```yaml\n%s\n```")),
    f"```\n{json.dumps(GOOD)}\n```\n```\n{json.dumps(GOOD)}\n```", "```json\n" + json.dumps(GOOD | {"plot": 11}) + "\n```", "```json\n```", "``````", "`" * 100_000,
    "```" + " " * 100_000,
]  # fmt: skip


@pytest.mark.parametrize("answer", BAD, ids=range(len(BAD)))
def test_answer_that_is_not_four_scores_is_none(answer):
    assert scores(answer) is None


def test_scores_are_whole_numbers_from_1_to_10():
    assert scores(json.dumps(GOOD)) == GOOD and scores(json.dumps(GOOD | {"plot": 10, "grammar": 1})) == GOOD | {"plot": 10, "grammar": 1}
    assert [type(value) for value in scores(json.dumps(GOOD | {"plot": 4.0})).values()] == [int] * 4
    assert scores(None) is None and scores(3) is None


@pytest.mark.parametrize("form", ["```json\n%s\n```", "```\n%s\n```", "\n```JSON\r\n%s\r\n``` \n"])
def test_one_fence_around_the_answer_is_taken_off(form):
    assert scores(form % json.dumps(GOOD, indent=1)) == GOOD


def test_story_is_asked_once_with_the_studys_prompt(serve):
    judge, server = serve(GOOD)
    assert judge.grade(["Once {story} *** upon."]) == [GOOD]
    assert judge.grade(["Once {story} *** upon."]) == [GOOD] and len(server.asked) == 1  # the second time from the disk
    headers, request = server.asked[0]
    text = request["messages"][0]["content"]
    assert headers["authorization"] == f"Bearer {KEY}" and request["model"] == "m" and request["temperature"] == 0
    assert text.count("Once {story} *** upon.") == 1 and "each on a scale from 1 to 10" in text


def test_rate_limits_and_errors_of_the_server_are_waited_for(serve):
    judge, server = serve((429, "", 0), (500, "", 0), (503, "", 0), GOOD)
    assert judge.grade(["a"]) == [GOOD] and len(server.asked) == 4


def test_quota_of_a_minute_is_outlived(serve, monkeypatch):
    judge, server = serve(*[(429, "", 0)] * module.RETRIES, GOOD)
    for name in ("INITIAL_RETRY_DELAY", "MAX_RETRY_DELAY"):
        monkeypatch.setattr(_base_client, name, getattr(_constants, name))
    paused = []
    monkeypatch.setattr(_base_client, "time", SimpleNamespace(sleep=paused.append))
    monkeypatch.setattr(_base_client, "random", lambda: 1.0)  # the shortest pauses
    assert judge.grade(["a"]) == [GOOD] and len(paused) == module.RETRIES and 60 < sum(paused) < 120


def test_time_out_is_tried_again(serve, monkeypatch):
    monkeypatch.setattr(module, "SECONDS", 0.5)
    judge, server = serve((200, GOOD, 1.5), GOOD)
    assert judge.grade(["a"]) == [GOOD] and len(server.asked) == 2


def test_bad_answers_are_asked_again_then_rejected_and_not_kept(serve, home):
    judge, server = serve("{broken", GOOD | {"plot": 11}, GOOD, *[GOOD | {"plot": 100}] * 3, GOOD)
    assert judge.grade(["a", "b"]) == [GOOD, None] and len(server.asked) == 6
    assert judge.grade(["a", "b"]) == [GOOD, GOOD] and len(server.asked) == 7  # what was rejected is asked again


NO_REPLY = [b"", b"<html>", b"[]", b"null", b"{}", b'{"choices": []}', b'{"choices": null}', b'{"choices": [{"message": null}]}', b"\xff\xfe"]


@pytest.mark.parametrize("body", NO_REPLY)
def test_reply_that_is_no_reply_is_rejected(serve, body):
    judge, server = serve(*[(200, body, 0)] * 30)
    assert judge.grade(["a"]) == [None]


def test_refused_key_is_one_sentence_without_the_key(serve, home, capsys):
    judge, server = serve((401, "", 0))
    with pytest.raises(RtxError, match="refuses with status 401; check RTX_JUDGE_KEY") as error:
        judge.grade(["a"])
    assert error.value.__cause__ is None and KEY not in str(error.value) + repr(judge) + capsys.readouterr().out


REFUSED = (400, "", 0)
LADDER = {  # replies, what is graded, and how each request was made: with a schema, with a temperature
    "no schema": ([REFUSED, GOOD, GOOD, GOOD], [GOOD] * 3, ["st", "t", "t", "t"]),
    "neither": ([REFUSED, (422, "", 0), GOOD, GOOD], [GOOD] * 2, ["st", "t", "", ""]),
    "a refusal is no answer": ([REFUSED, REFUSED, "?", "?", GOOD], [GOOD], ["st", "t", "", "", ""]),
    "one story is refused": ([GOOD, *[REFUSED] * 3, GOOD], [GOOD, None, GOOD], ["st", "st", "t", "", "st"]),
    "one story is refused by an endpoint that takes neither": ([REFUSED, REFUSED, GOOD, REFUSED, GOOD], [GOOD, None, GOOD], ["st", "t", "", "", ""]),
    "one story is refused, one taken otherwise": ([*[REFUSED] * 3, GOOD, REFUSED, GOOD, GOOD], [None, GOOD, GOOD, GOOD], ["st", "t", "", "st", "st", "t", "st"]),
}


@pytest.mark.parametrize("replies, graded, asked", LADDER.values(), ids=LADDER)
def test_a_refused_request_is_made_with_less_and_what_was_taken_is_remembered(serve, replies, graded, asked):
    judge, server = serve(*replies)
    assert judge.grade(list("abcd"[: len(graded)])) == graded
    made = ["".join(letter for letter, name in (("s", "response_format"), ("t", "temperature")) if name in request) for _, request in server.asked]
    assert made == asked and not any("not valid" in text for text, reply in zip(texts(server), [None, *replies]) if reply != "?")


def texts(server) -> list[str]:
    return [request["messages"][0]["content"] for _, request in server.asked]


def test_a_repeat_says_that_the_last_answer_was_not_valid(serve):
    judge, server = serve("?", "", GOOD, (200, b"<html>", 0), GOOD)
    assert judge.grade(["a", "b"]) == [GOOD] * 2
    first, second, third, other, other_again = texts(server)
    added = second.removeprefix(first)
    assert first.endswith(module.FORM) and second == third == first + added and added.count("\n") == 1 and other == other_again
    assert "not valid" in added and "whole number from 1 to 10" in added


def test_where_every_story_is_refused_it_is_the_settings(serve):
    judge, _ = serve(*[(400, "", 0)] * 6)
    with pytest.raises(RtxError, match="refuses with status 400; check RTX_JUDGE_KEY") as error:
        judge.grade(["a", "b"])
    assert KEY not in str(error.value)


def test_rate_limit_without_end_is_one_sentence(serve, monkeypatch):
    monkeypatch.setattr(module, "RETRIES", 2)
    judge, server = serve(*[(429, "", 0)] * 3)
    with pytest.raises(RtxError, match="refuses with status 429"):
        judge.grade(["a"])
    assert len(server.asked) == 3


def test_unreachable_endpoint_is_one_sentence(serve, monkeypatch):
    monkeypatch.setattr(module, "RETRIES", 1)
    judge, server = serve()
    server.shutdown()
    server.server_close()
    with pytest.raises(RtxError, match="cannot be reached"):
        judge.grade(["a"])


def test_key_is_never_written(serve, home):
    judge, _ = serve(GOOD)
    judge.grade(["a"])
    written = [path for path in home.rglob("*") if path.is_file()]
    assert written and all(KEY not in path.read_text() for path in written)


def test_damaged_cache_is_asked_anew(serve, home):
    judge, server = serve(GOOD, GOOD | {"plot": 9})
    judge.grade(["a"])
    (kept,) = (home / "_build" / "cache" / "judge").iterdir()
    kept.write_text(json.dumps(GOOD | {"plot": 11}))
    assert judge.grade(["a"]) == [GOOD | {"plot": 9}] and len(server.asked) == 2


def test_without_a_key_there_is_no_judge(monkeypatch):
    monkeypatch.delenv("RTX_JUDGE_KEY", raising=False)
    assert Judge.from_environment() is None
    with pytest.raises(RtxError, match="RTX_JUDGE_KEY is not set"):
        module.main(["tinystories"])
    monkeypatch.setenv("RTX_JUDGE_KEY", f" {KEY}\n")
    assert Judge.from_environment().key == KEY


VARIANT = language_settings("tinystories", {}).variant
BEGINNINGS = ["u don't have to", "Once upon a", '"Look," said', "7 ducks", "'t was", "Tim"]


def story(model: str, seed: int, n: int = 2) -> Record:
    made = [{"prompt": BEGINNINGS[i], "text": f"{model} {seed} wrote {i}"} for i in range(n)]
    data = {"source": "embedded", "sha256": "d" * 64}
    return Record({"experiment": VARIANT, "model": model, "seed": seed, "protocol": "report", "data": data, "environment": {}, "key": "k", "samples": made,
                   "code": {"commit": None, "clean": True, "fingerprints": []}}, None)  # fmt: skip


def recorded(*records: Record, monkeypatch) -> Runs:
    monkeypatch.setattr(Runs, "notes", [])
    monkeypatch.setattr(module.store, "find", lambda source, variant, *run: next((r for r in records if (r["model"], r["seed"]) == run), None))
    models, seeds = ([*dict.fromkeys(r[key] for r in records)] for key in ("model", "seed"))
    return Runs(language_settings("tinystories", {"models": models, "seeds": seeds}), list(records), None)


def grade(record: Record, marks: list[int | None], judge: str = "m", **changes) -> None:
    scored = [mark and dict.fromkeys(CRITERIA, mark) for mark in marks]
    measurement.save({
        "kind": "judge", "of": record["experiment"], "name": f"{record['model']}-seed{record['seed']}", "model": record["model"], "seed": record["seed"],
        "protocol": "report", "data": record["data"], "environment": {}, "texts_sha256": measurement.texts_sha256(record["samples"]),
        "judge": judge, "scores": scored, "rejected": scored.count(None), "code": measurement.made_by("judge"),
    } | changes)  # fmt: skip


def shown(runs: Runs) -> tuple[list[list[str]], str]:
    """Our rows (model, judge, stories, rejected, …, average) and the note."""
    page = plain(markdown(story_texts.judged(runs, label="tab-a")))
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in page.splitlines() if "| ours, " in line]
    return [[*row[:4], row[-1]] for row in rows], page.split("{.table-note}\n")[1]


def test_models_are_compared_on_the_stories_that_were_graded_for_all(monkeypatch):
    control, frailt = story("control", 0, 4), story("frailt", 0, 4)
    runs = recorded(control, frailt, monkeypatch=monkeypatch)
    grade(control, [1, 8, 8, None])
    grade(frailt, [None, 6, 8, 9])
    rows, note = shown(runs)
    assert rows == [["Control", "ours, m", "2", "1", "8.00 ± 0.00"], ["FraiLT", "ours, m", "2", "1", "7.00 ± 1.00"]]
    assert "graded for every model" in note and "a story rejected for one model counts for none" in note


def test_only_seeds_of_all_models_count(monkeypatch):
    records = [story("control", 0), story("control", 1), story("frailt", 1)]
    for record, marks in zip(records, ([1, 1], [4, 6], [5, 7])):
        grade(record, marks)
    runs = recorded(*records, monkeypatch=monkeypatch)
    assert shown(runs)[0] == [["Control", "ours, m", "2", "0", "5.00 ± 1.00"], ["FraiLT", "ours, m", "2", "0", "6.00 ± 1.00"]]
    rows, note = shown(recorded(records[0], records[2], monkeypatch=monkeypatch))
    assert rows == [["Control", "ours, m", "0", "0", "–"], ["FraiLT", "ours, m", "0", "0", "–"]]
    assert "m graded no story of one seed and beginning for every model of its rows, so they have no means." in note


def test_each_judge_has_rows_of_its_own(monkeypatch):
    records = [story("control", 0), story("control", 1), story("frailt", 0), story("frailt", 1)]
    for record, judge, mark in zip(records, ("strict", "mild", "strict", "mild"), (2, 9, 3, 8)):
        grade(record, [mark, mark], judge)
    rows, _ = shown(recorded(*records, monkeypatch=monkeypatch))
    assert [(row[0], row[1], row[-1]) for row in rows] == [
        ("Control", "ours, mild", "9.00 ± 0.00"), ("FraiLT", "ours, mild", "8.00 ± 0.00"),
        ("Control", "ours, strict", "2.00 ± 0.00"), ("FraiLT", "ours, strict", "3.00 ± 0.00"),
    ]  # fmt: skip


def test_scores_that_other_code_made_say_so(monkeypatch):
    runs = recorded(story("control", 0), story("frailt", 0), monkeypatch=monkeypatch)
    for record in runs:
        grade(record, [5, 5], code={"commit": "c0ffee0123456789", "clean": True, "fingerprints": ["of other code"]})
    rows, note = shown(runs)
    assert len(rows) == 2 and "Control seed 0, FraiLT seed 0: the scores were made by another version of the code (commit c0ffee012)." in note
    grade(runs.records[0], [5, 5])
    assert "FraiLT seed 0: the scores were made by another version of the code" in (said := shown(runs)[1]) and "Control seed 0" not in said


def test_scores_of_other_texts_are_not_called_missing(monkeypatch):
    runs = recorded(story("control", 0), story("frailt", 0), monkeypatch=monkeypatch)
    assert "none was given" in shown(runs)[1]
    grade(runs.records[0], [5, 5], texts_sha256="0" * 64)
    rows, note = shown(runs)
    assert rows == [] and "none was given" not in note and note == "Control seed 0: the recorded scores are of other texts than the run's; run the judge again."
    grade(runs.records[1], [5, 5])
    rows, note = shown(runs)
    assert len(rows) == 1 and "Control seed 0: the recorded scores are of other texts" in note and "none was given" not in note


def test_what_the_judge_records_is_what_the_page_shows(serve, monkeypatch):
    runs = recorded(story("control", 0), story("frailt", 0), monkeypatch=monkeypatch)
    judge, server = serve(GOOD, GOOD, *["?"] * 3, GOOD)
    assert [made["rejected"] for made in module.judge(runs.settings, judge, "embedded")] == [0, 1]
    assert as_graded(runs.records[1]["samples"][0]) in texts(server)[2]
    assert shown(runs)[0] == [["Control", "ours, m", "1", "0", "5.50"], ["FraiLT", "ours, m", "1", "1", "5.50"]]


def test_beginnings_that_are_shown_begin_a_sentence(monkeypatch):
    runs = recorded(story("control", 0, 6), story("frailt", 0, 6), monkeypatch=monkeypatch)

    def beginnings(**options) -> list[str]:
        page = plain(markdown(story_texts.samples(runs, label="tab-a", **options)))
        return [line.split("|")[1].strip().removesuffix(" …") for line in page.splitlines() if "wrote" in line]

    assert beginnings() == ["Once upon a", '"Look," said', "7 ducks"] and beginnings(n=9) == [*BEGINNINGS[1:4], "Tim"]
    for record in runs:
        record["samples"][:] = [sample | {"prompt": sample["prompt"].lower().strip('"7 ')} for sample in record["samples"]]
    assert beginnings(n=2) == ["u don't have to", "once upon a"]
