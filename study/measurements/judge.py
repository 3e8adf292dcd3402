"""Stories graded by a language model, with the study's prompt, through any endpoint of OpenAI's protocol.

`RTX_JUDGE_KEY`, `RTX_JUDGE_URL` and `RTX_JUDGE_MODEL` name it; the key is shown nowhere.  An answer that is
not four whole numbers from 1 to 10 is asked for again, and in the end the story counts as rejected.  Errors
of the server or the network are waited out by the client; an endpoint without a usable reply ends the
command and leaves the records as they were.  Valid answers are kept, so a second run asks nothing.
"""

import hashlib
import json
import os
import re
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from rtx_core.errors import RtxError
from rtx_core.paths import build, write_json

CRITERIA = ("grammar", "creativity", "consistency", "plot")
GRADES = TypeAdapter(dict[Literal[CRITERIA], Annotated[int, Field(strict=True, ge=1, le=10)]])
URL = "https://generativelanguage.googleapis.com/v1beta/openai/"
MODEL = "gemini-2.5-flash"  # the study's was its preview
ATTEMPTS = 3  # answers that are not valid until a story is rejected
SECONDS = 60.0  # of a request
RETRIES = 18  # of one that fails: the client's pauses double from half a second to eight, two minutes in all
SETTINGS = {"temperature": 0, "response_format": {"type": "json_object"}}  # left out where refused
FENCE = re.compile(r"\s*```(?:json)?(.*)```\s*", re.DOTALL | re.IGNORECASE)
TEXTS = json.loads(Path(__file__).with_name("judge.json").read_text(encoding="utf-8"))
PROMPT, AGAIN = ("\n".join(TEXTS[name]) for name in ("prompt", "again"))
CHECK = "check RTX_JUDGE_KEY, RTX_JUDGE_URL and RTX_JUDGE_MODEL, or try again later"


def scores(answer: object) -> dict[str, int] | None:
    """The four scores if the answer is exactly that, else None."""
    try:
        fenced = FENCE.fullmatch(answer)
        grades = GRADES.validate_json(fenced[1] if fenced else answer)
    except (TypeError, ValueError):
        return None
    once = all(answer.count(f'"{name}"') == 1 for name in CRITERIA)
    return {name: grades[name] for name in CRITERIA} if once and len(grades) == len(CRITERIA) else None


class Judge:
    """One model at one endpoint."""

    def __init__(self):
        key = os.environ.get("RTX_JUDGE_KEY", "").strip()
        if not key:
            raise RtxError("Nothing was graded: the variable RTX_JUDGE_KEY is not set.")
        if not (key.isascii() and key.isprintable()):
            raise RtxError("RTX_JUDGE_KEY is not all printable ASCII, as a key is; copy the key again.")
        try:
            from openai import OpenAI
        except ImportError as error:
            raise RtxError("Grading needs the package openai: pip install openai.") from error
        self.url, self.model = os.environ.get("RTX_JUDGE_URL") or URL, judge_model()
        self.client = OpenAI(api_key=key, base_url=self.url, timeout=SECONDS, max_retries=RETRIES)
        self.settings = SETTINGS

    def grade(self, stories: list[str]) -> list[dict[str, int] | None]:
        """Scores of each story, None where it was rejected; that none has scores is an error."""
        graded = []
        for story in stories:
            asked = hashlib.sha256(json.dumps([self.url, self.model, TEXTS, story]).encode()).hexdigest()
            kept = build() / "cache" / "judge" / f"{asked[:32]}.json"
            found = scores(kept.read_text(encoding="utf-8", errors="replace")) if kept.exists() else None
            if found is None and (found := self._grade(story)) is not None:
                write_json(kept, found)
            graded.append(found)
        if not any(graded):
            raise RtxError(f"{self.model} gave no valid answer for any of {len(stories)} stories; {CHECK}.")
        return graded

    def _grade(self, story: str) -> dict[str, int] | None:
        question = text = PROMPT.replace("{story}", story)
        for _ in range(ATTEMPTS):
            if (found := scores(self._answer(text))) is not None:
                return found
            text = question + AGAIN

    def _answer(self, text: str) -> str:
        """The model's words."""
        import openai

        create, messages = self.client.chat.completions.create, [{"role": "user", "content": text}]
        try:
            reply = create(model=self.model, messages=messages, **self.settings)
            return (reply.choices[0].message.content or "") if len(reply.choices) else ""
        except openai.APIStatusError as error:  # the server's own words stay out: some repeat the key
            problem = f"status {error.status_code}"
        except openai.APIConnectionError as error:
            problem = type(error).__name__
        except (openai.OpenAIError, ValueError, TypeError, AttributeError):
            problem = "a reply that is none of OpenAI's protocol"
        if problem in ("status 400", "status 422") and self.settings:
            self.settings = {}
            return self._answer(text)
        raise RtxError(f"The judge's endpoint gives no usable reply ({problem}); {CHECK}.")


def judge_model() -> str:
    return os.environ.get("RTX_JUDGE_MODEL") or MODEL


def identity(record) -> dict:
    """Other texts, or another judge, have no scores yet."""
    texts = json.dumps([[sample["prompt"], sample["text"]] for sample in record["samples"]])
    return {"judge": judge_model(), "texts_sha256": hashlib.sha256(texts.encode()).hexdigest()}


def of_run(record, study) -> list[tuple]:
    judge = Judge()
    graded = judge.grade([f"{sample['prompt']}*** {sample['text']}" for sample in record["samples"]])
    print(f"{record['model']}: {graded.count(None)} of {len(graded)} rejected", flush=True)
    suffix = [re.sub(r"[^\w.]+", "-", judge.model)]
    return [({"suffix": suffix, "scores": graded, "rejected": graded.count(None)}, None)]
