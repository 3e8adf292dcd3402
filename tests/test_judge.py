"""The judge, against an endpoint that speaks the protocol and misbehaves."""

import json
import sys
from functools import partial

import httpx2
import openai
import pytest

from rtx_core import RtxError, records
from rtx_core.experiments import measure as measuring
from study.measurements import judge as module
from study.measurements.judge import Judge, scores

KEY = "sk-very-secret-0123456789"
GOOD = {"grammar": 7, "creativity": 6, "consistency": 5, "plot": 4}
HTML = (200, b"<html>Sign in</html>")
OPENAI = openai.OpenAI


def answered(content):
    message = {"role": "assistant", "content": content if isinstance(content, str) else json.dumps(content)}
    choice = {"index": 0, "finish_reason": "stop", "message": message}
    about = {"id": "1", "object": "chat.completion", "created": 0, "model": "m"}
    return json.dumps(about | {"choices": [choice]}).encode()


@pytest.fixture(autouse=True)
def settings(monkeypatch):
    monkeypatch.setenv("RTX_JUDGE_KEY", KEY)
    monkeypatch.setenv("RTX_JUDGE_MODEL", "vendor/m 1.5")
    monkeypatch.setattr(module, "RETRIES", 3)


class Endpoint:
    """Answers with the next of `replies`, the last for ever: an answer, (status, body or None), or an error."""

    def __init__(self, replies: list):
        self.replies, self.asked = replies, []

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        self.asked.append((request.headers["Authorization"], json.loads(request.content)))
        reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        if isinstance(reply, Exception):
            raise reply
        status, body = reply if isinstance(reply, tuple) else (200, answered(reply))
        if body is None:
            body = json.dumps({"error": {"message": f"no: {request.headers['Authorization']}"}})
        headers = {"Content-Type": "application/json", "retry-after-ms": "1"}
        return httpx2.Response(status, headers=headers, content=body)


@pytest.fixture
def serve(monkeypatch):
    def start(*replies):
        endpoint = Endpoint(list(replies))
        client = httpx2.Client(transport=httpx2.MockTransport(endpoint))
        monkeypatch.setattr(openai, "OpenAI", partial(OPENAI, http_client=client))
        return endpoint

    return start


def text_of(server, n):
    return server.asked[n][1]["messages"][0]["content"]


WRITTEN = json.dumps(GOOD)
BAD = ["", "no JSON", "null", "[7, 7, 7, 7]", '{"grammar": 7}', "\x00", "[" * 100_000, "```" + " " * 100_000, None, 3]
BAD += [json.dumps(GOOD | {"plot": value}) for value in (11, 0, 9.5, "10", True, None)]
BAD += [json.dumps(GOOD | {"bonus": 10}), WRITTEN * 2, f"[{WRITTEN}]", '{"plot": 4, ' + WRITTEN[1:], WRITTEN.upper()]
BAD += [f"Here:\n```json\n{WRITTEN}\n```", f"```json\n{WRITTEN}", f"```yaml\n{WRITTEN}\n```"]


@pytest.mark.parametrize("answer", BAD, ids=range(len(BAD)))
def test_an_answer_that_is_not_four_scores_is_none(answer):
    assert scores(answer) is None


@pytest.mark.parametrize("form", ["%s", "```json\n%s\n```", "```\n%s\n```", "\n```JSON\r\n%s\r\n``` \n"])
def test_four_whole_numbers_from_1_to_10_are_scores(form):
    for grades in (GOOD, GOOD | {"plot": 10, "grammar": 1}):
        assert scores(form % json.dumps(grades, indent=1)) == grades


def test_a_story_is_asked_once_with_the_studys_prompt(serve, home):
    server = serve(GOOD)
    for _ in range(2):  # the second time from the disk
        assert Judge().grade(["Once {story} *** upon."]) == [GOOD] and len(server.asked) == 1
    authorization, request = server.asked[0]
    assert authorization == f"Bearer {KEY}"
    assert (request["model"], request["temperature"]) == ("vendor/m 1.5", 0)
    assert text_of(server, 0).count("Once {story} *** upon.") == 1 and len(text_of(server, 0)) > 400
    (kept,) = (home / "_build" / "cache" / "judge").iterdir()
    kept.write_text(json.dumps(GOOD | {"plot": 11}))
    assert Judge().grade(["Once {story} *** upon."]) == [GOOD]
    assert len(server.asked) == 2  # the damaged one is not used


def test_bad_answers_are_asked_again_then_rejected_and_not_kept(serve):
    server = serve("{broken", GOOD, GOOD | {"plot": 100}, "", "?", GOOD)
    assert Judge().grade(["a", "b"]) == [GOOD, None] and len(server.asked) == 5
    assert text_of(server, 1) == text_of(server, 0) + module.AGAIN
    assert Judge().grade(["a", "b"]) == [GOOD, GOOD] and len(server.asked) == 6


@pytest.mark.parametrize("status", [400, 422])
def test_an_endpoint_that_refuses_settings_is_asked_without_them(serve, status):
    server = serve((status, None), GOOD, GOOD)
    assert Judge().grade(["a"]) == [GOOD]
    assert "temperature" in server.asked[0][1] and "temperature" not in server.asked[1][1]


FAILURES = {f"status {status}": (status, None) for status in (401, 404, 422, 429)}
FAILURES["APIConnectionError"] = httpx2.ConnectError("no route")


@pytest.mark.parametrize("said", FAILURES)
def test_a_refused_key_and_a_missing_endpoint_are_one_sentence_without_the_key(serve, said, capsys, monkeypatch):
    serve(FAILURES[said])
    if said == "APIConnectionError":  # whose pauses the endpoint does not shorten
        monkeypatch.setattr(module, "RETRIES", 0)
    with pytest.raises(RtxError, match=said) as error:
        Judge().grade(["a"])
    assert KEY not in str(error.value) + repr(error.value.__cause__) + capsys.readouterr().out


@pytest.mark.parametrize("key", ["", "sk-ü", "a\nb"])
def test_without_a_key_or_the_client_it_is_one_sentence(monkeypatch, key):
    monkeypatch.setenv("RTX_JUDGE_KEY", key)
    with pytest.raises(RtxError, match="RTX_JUDGE_KEY is not") as error:
        Judge()
    assert not key or key not in str(error.value)
    monkeypatch.setenv("RTX_JUDGE_KEY", KEY)
    monkeypatch.setitem(sys.modules, "openai", None)
    with pytest.raises(RtxError, match="pip install openai"):
        Judge()


@pytest.fixture
def run(monkeypatch):
    """A recorded run with two stories."""
    samples = [{"prompt": "Once", "text": f"upon {i}"} for i in range(2)]
    data = {"source": "embedded", "sha256": "d" * 64}
    content = {"name": "x", "model": "control", "seed": 0, "key": "k", "budget": "full"}
    record = records.Record(content | {"samples": samples, "data": data}, None)
    monkeypatch.setattr(records, "find", lambda *address: record)
    given = {"models": ["control"], "seeds": [0], "source": "embedded"}
    return lambda **more: measuring.measure("judge", "tinystories", **given, **more)


def test_scores_are_recorded_under_the_name_of_their_judge(serve, run, monkeypatch, home):
    server = serve(GOOD, "?")
    (made,) = run()
    assert made["name"] == "control-seed0-vendor-m-1.5"
    assert (made["judge"], made["run"]) == ("vendor/m 1.5", "k")
    assert made["scores"] == [GOOD, None] and made["rejected"] == 1
    assert run()[0].content == made.content and len(server.asked) == 4  # found, and nothing asked
    monkeypatch.setenv("RTX_JUDGE_MODEL", "other")
    server.replies = [GOOD]
    assert [m["name"] for m in run()] == ["control-seed0-other"]
    assert len(records.measurements("judge", source="embedded")) == 2
    written = [path for path in home.rglob("*") if path.is_file()]
    assert written and all(KEY not in path.read_text() for path in written)


UNUSABLE = [[HTML], ["?"], [GOOD, HTML], *([(200, body)] for body in (b"", b"[]", b"\xff", b'{"choices": [7]}'))]


@pytest.mark.parametrize("replies", UNUSABLE, ids=range(len(UNUSABLE)))
def test_without_a_usable_reply_nothing_is_replaced(serve, run, home, replies):
    serve(GOOD)
    (made,) = run()
    before = made.path.read_bytes()
    for kept in (home / "_build" / "cache" / "judge").iterdir():
        kept.unlink()
    serve(*replies)
    with pytest.raises(RtxError, match="gives no usable reply|gave no valid answer for any of 2 stories"):
        run(again=True)
    assert made.path.read_bytes() == before
