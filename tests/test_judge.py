"""The judge, against a local server that speaks the protocol and misbehaves."""

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from rtx_core.errors import RtxError
from rtx_core.evaluation import judge as module
from rtx_core.evaluation.judge import CRITERIA, Judge, scores

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
]  # fmt: skip


@pytest.mark.parametrize("answer", BAD, ids=range(len(BAD)))
def test_answer_that_is_not_four_scores_is_none(answer):
    assert scores(answer) is None


def test_scores_are_whole_numbers_from_1_to_10():
    assert scores(json.dumps(GOOD)) == GOOD and scores(json.dumps(GOOD | {"plot": 10, "grammar": 1})) == GOOD | {"plot": 10, "grammar": 1}
    assert [type(value) for value in scores(json.dumps(GOOD | {"plot": 4.0})).values()] == [int] * 4
    assert scores(None) is None and scores(3) is None


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


def test_endpoint_without_schemas_is_asked_without(serve):
    judge, server = serve((400, "", 0), GOOD)
    assert judge.grade(["a"]) == [GOOD]
    assert ["response_format" in request for _, request in server.asked] == [True, False]


def test_one_refused_story_is_rejected_and_the_others_graded(serve):
    judge, server = serve(GOOD, *[(400, "", 0)] * 3, GOOD)
    assert judge.grade(["a", "b", "c"]) == [GOOD, None, GOOD]


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
