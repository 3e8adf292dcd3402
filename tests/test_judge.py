"""The judge, against a local server that speaks the protocol and misbehaves."""

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from rtx_core import RtxError, records
from rtx_core.experiments import measure as measuring
from study.measurements import judge as module
from study.measurements.judge import CRITERIA, Judge, scores

KEY = "sk-very-secret-0123456789"
GOOD = {"grammar": 7, "creativity": 6, "consistency": 5, "plot": 4}
HTML = (200, b"<html>Sign in</html>")


class Handler(BaseHTTPRequestHandler):
    """Answers with the next of `server.replies`, the last for ever: an answer, or (status, body or None)."""

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append((self.headers["Authorization"], request))
        replies = self.server.replies
        reply = replies.pop(0) if len(replies) > 1 else replies[0]
        status, body = reply if isinstance(reply, tuple) else (200, answered(reply))
        if body is None:
            body = json.dumps({"error": {"message": f"no: {self.headers['Authorization']}"}}).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("retry-after-ms", "1")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


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


@pytest.fixture
def serve(monkeypatch):
    running = []

    def start(*replies):
        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads, server.replies, server.asked = True, list(replies), []
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        running.append(server)
        monkeypatch.setenv("RTX_JUDGE_URL", f"http://127.0.0.1:{server.server_address[1]}/v1")
        return server

    yield start
    for server in running:
        server.shutdown()
        server.server_close()


def text_of(server, n):
    return server.asked[n][1]["messages"][0]["content"]


# -- an answer -----------------------------------------------------------------------------------------------

BAD = ["", "no JSON", "{", "[]", "7", "null", "[7, 7, 7, 7]", '{"grammar": 7}', '{"plot": NaN}', "\x00"]
BAD += ["[" * 100_000]
BAD += [json.dumps(GOOD | {"plot": value}) for value in (11, 0, -3, 9.5, "10", True, None)]
BAD += [json.dumps(GOOD | {"bonus": 10}), json.dumps(GOOD) * 2, json.dumps([GOOD])]
BAD += ['{"plot": 4, ' + json.dumps(GOOD)[1:]]
BAD += [json.dumps(GOOD)[:-1] + ', "plot": 1e400}', json.dumps({name.upper(): 10 for name in CRITERIA})]
BAD += [form % json.dumps(GOOD) for form in ("Here:\n```json\n%s\n```", "```json\n%s", "```yaml\n%s\n```")]
BAD += ["```" + " " * 100_000, "``````", None, 3]


@pytest.mark.parametrize("answer", BAD, ids=range(len(BAD)))
def test_an_answer_that_is_not_four_scores_is_none(answer):
    assert scores(answer) is None


@pytest.mark.parametrize("form", ["%s", "```json\n%s\n```", "```\n%s\n```", "\n```JSON\r\n%s\r\n``` \n"])
def test_four_whole_numbers_from_1_to_10_are_scores(form):
    for grades in (GOOD, GOOD | {"plot": 10, "grammar": 1}):
        assert scores(form % json.dumps(grades, indent=1)) == grades


# -- asking --------------------------------------------------------------------------------------------------


def test_a_story_is_asked_once_with_the_studys_prompt(serve, home):
    server = serve(GOOD)
    for _ in range(2):  # the second time from the disk
        assert Judge().grade(["Once {story} *** upon."]) == [GOOD] and len(server.asked) == 1
    authorization, request = server.asked[0]
    assert authorization == f"Bearer {KEY}"
    assert (request["model"], request["temperature"]) == ("vendor/m 1.5", 0)
    assert text_of(server, 0).count("Once {story} *** upon.") == 1
    assert "In the following exercise, the student is given a task" in text_of(server, 0)
    (kept,) = (home / "_build" / "cache" / "judge").iterdir()
    kept.write_text(json.dumps(GOOD | {"plot": 11}))
    assert Judge().grade(["Once {story} *** upon."]) == [GOOD]
    assert len(server.asked) == 2  # the damaged one is not used


def test_bad_answers_are_asked_again_then_rejected_and_not_kept(serve):
    server = serve("{broken", GOOD, GOOD | {"plot": 100}, "", "?", GOOD)
    assert Judge().grade(["a", "b"]) == [GOOD, None] and len(server.asked) == 5
    assert text_of(server, 1) == text_of(server, 0) + module.AGAIN and "not valid" in module.AGAIN
    assert Judge().grade(["a", "b"]) == [GOOD, GOOD] and len(server.asked) == 6


def test_errors_of_the_server_are_waited_for(serve):
    server = serve((429, None), (500, None), (503, None), GOOD)
    assert Judge().grade(["a"]) == [GOOD] and len(server.asked) == 4


@pytest.mark.parametrize("status", [400, 422])
def test_an_endpoint_that_refuses_settings_is_asked_without_them(serve, status):
    server = serve((status, None), GOOD, GOOD)
    assert Judge().grade(["a"]) == [GOOD]
    assert "temperature" in server.asked[0][1] and "temperature" not in server.asked[1][1]


@pytest.mark.parametrize("status", [401, 403, 404, 422, 429])
def test_a_refused_key_is_one_sentence_without_the_key(serve, status, capsys):
    serve((status, None))
    with pytest.raises(RtxError, match=f"status {status}.; check RTX_JUDGE_KEY") as error:
        Judge().grade(["a"])
    assert KEY not in str(error.value) + repr(error.value.__cause__) + capsys.readouterr().out


def test_an_unreachable_endpoint_is_one_sentence(monkeypatch):
    monkeypatch.setenv("RTX_JUDGE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setattr(module, "RETRIES", 0)
    with pytest.raises(RtxError, match="no usable reply \\(APIConnectionError\\)"):
        Judge().grade(["a"])


@pytest.mark.parametrize(
    "key, said", [("", "RTX_JUDGE_KEY is not set"), ("sk-ü", "printable ASCII"), ("a\nb", "printable ASCII")]
)
def test_a_key_that_is_none_is_one_sentence(monkeypatch, key, said):
    monkeypatch.setenv("RTX_JUDGE_KEY", key)
    with pytest.raises(RtxError, match=said) as error:
        Judge()
    assert not key or key not in str(error.value)


def test_without_the_client_it_is_one_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "openai", None)
    with pytest.raises(RtxError, match="pip install openai"):
        Judge()


# -- the record ----------------------------------------------------------------------------------------------


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


BODIES = [b"", b"{", b"[]", b"null", b"{}", b"\xff\xfe"]
BODIES += [b'{"choices": null}', b'{"choices": [7]}', b'{"choices": []}']
UNUSABLE = [[HTML], ["?"], [GOOD, HTML], *([(200, body)] for body in BODIES)]


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
