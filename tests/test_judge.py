"""The judge, against an endpoint that speaks the protocol and misbehaves."""

import json
from functools import partial

import httpx2
import pytest

from rtx_core import RtxError, records
from rtx_core.experiments import measure as measuring
from study.measurements import judge

KEY = "sk-very-secret-0123456789"
GOOD = {"grammar": 7, "creativity": 6, "consistency": 5, "plot": 4}
WRITTEN = json.dumps(GOOD)


def answered(content: str) -> bytes:
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": content}}
    about = {"id": "1", "object": "chat.completion", "created": 0, "model": "m"}
    return json.dumps(about | {"choices": [choice]}).encode()


@pytest.fixture
def serve(monkeypatch):
    """Answers with the next of some replies, the last for ever: an answer, or (status, body)."""
    import openai  # a second's work

    original = openai.OpenAI
    monkeypatch.setenv("RTX_JUDGE_KEY", KEY)
    monkeypatch.setenv("RTX_JUDGE_MODEL", "vendor/m 1.5")
    monkeypatch.setattr(judge, "RETRIES", 1)

    def start(*replies) -> list[dict]:
        asked, left = [], list(replies)

        def answer(request: httpx2.Request) -> httpx2.Response:
            asked.append(json.loads(request.content) | {"authorization": request.headers["Authorization"]})
            reply = left.pop(0) if len(left) > 1 else left[0]
            status, body = reply if isinstance(reply, tuple) else (200, answered(reply))
            headers = {"Content-Type": "application/json", "retry-after-ms": "1"}
            return httpx2.Response(status, headers=headers, content=body)

        client = httpx2.Client(transport=httpx2.MockTransport(answer))
        monkeypatch.setattr(openai, "OpenAI", partial(original, http_client=client))
        return asked

    return start


@pytest.fixture
def run(monkeypatch):
    samples = [{"prompt": "Once", "text": f"upon {i}"} for i in range(2)]
    data = {"name": "stories", "source": "embedded", "sha256": "d" * 64, "n_train": 9}
    content = {"name": "x", "model": "control", "seed": 0, "key": "c" * 24, "budget": "full"}
    record = records.Record(content | {"samples": samples, "data": data}, None)
    monkeypatch.setattr(records, "load", lambda *address: record)
    monkeypatch.setattr("rtx_core.data.stories.EMBEDDED", {"train": 30, "validation": 12})
    given = {"models": ["control"], "seeds": [0], "source": "embedded", "batch_size": 2, "block_size": 32}
    return lambda **more: measuring.measure("judge", "tinystories", **given, **more)


BAD = ["", "null", "[7, 7, 7, 7]", '{"grammar": 7}', WRITTEN * 2, f"Here:\n```json\n{WRITTEN}\n```"]
BAD += [json.dumps(GOOD | {"plot": value}) for value in (11, 0, 9.5, "10", None)] + [json.dumps(GOOD | {"bonus": 10})]


def test_an_answer_that_is_not_four_scores_is_asked_for_again_then_rejected(serve, run):
    asked = serve(*BAD[:2], f"```json\n{WRITTEN}\n```", *BAD[2:5])
    (made,) = run()
    assert made["scores"] == [GOOD, None] and made["rejected"] == 1 and len(asked) == 6
    for bad in BAD:
        serve(bad)
        with pytest.raises(RtxError, match="no valid answer for any of 2 stories"):
            run(again=True)


def test_scores_are_recorded_under_the_name_of_their_judge(serve, run, monkeypatch, home):
    asked = serve(WRITTEN)
    (made,) = run()
    assert made["name"] == "control-seed0-vendor-m-1.5"
    assert (made["judge"], made["run"], made["scores"]) == ("vendor/m 1.5", "c" * 24, [GOOD, GOOD])
    assert (asked[0]["model"], asked[0]["authorization"]) == ("vendor/m 1.5", f"Bearer {KEY}")
    assert asked[0]["messages"][0]["content"].count("Once*** upon 0") == 1
    assert run()[0].content == made.content and len(asked) == 2  # found, and nothing asked
    monkeypatch.setenv("RTX_JUDGE_MODEL", "other")
    assert [m["name"] for m in run()] == ["control-seed0-other"]
    written = [path for path in home.rglob("*") if path.is_file()]
    assert written and all(KEY.encode() not in path.read_bytes() for path in written)


@pytest.mark.parametrize("body", [b"<html>Sign in</html>", b"", b"[]", b'{"choices": [7]}', 401, 404, 429])
def test_without_a_usable_reply_nothing_is_replaced_and_the_key_is_not_told(serve, run, body):
    serve(WRITTEN)
    (made,) = run()
    before = made.path.read_bytes()
    serve((200, body) if isinstance(body, bytes) else (body, json.dumps({"error": {"message": KEY}}).encode()))
    with pytest.raises(RtxError, match="no usable reply") as error:
        run(again=True)
    assert made.path.read_bytes() == before and KEY not in str(error.value) + repr(error.value.__cause__)


def test_without_a_key_it_is_one_sentence(run, monkeypatch):
    monkeypatch.delenv("RTX_JUDGE_KEY", raising=False)
    with pytest.raises(RtxError, match="RTX_JUDGE_KEY is not set"):
        run()
