"""Stories graded by a large language model: `python -m rtx_core.evaluation.judge tinystories [name=value …]`.

The prompt is the study's.  Any endpoint that speaks OpenAI's protocol serves, Gemini's included; three variables name it:
`RTX_JUDGE_KEY`, without which nothing is graded, `RTX_JUDGE_URL` and `RTX_JUDGE_MODEL`.

An answer counts only if it is four whole numbers from 1 to 10, each once; one Markdown fence around it is taken off.  Anything
else is asked for again, with a line that says so, and in the end counted as rejected: it is never clipped, rounded or left out in
silence.  Valid answers are kept on disk, so a second run asks nothing.
"""

import hashlib
import json
import os
import re
import sys
from dataclasses import dataclass

import jsonschema
import yaml

from rtx_core.errors import RtxError
from rtx_core.language import LanguageSettings
from rtx_core.language import settings as language_settings
from rtx_core.paths import build, write_json
from rtx_core.results import language as store
from rtx_core.results import measurement
from rtx_core.results.measurement import Measurement

CRITERIA = ("grammar", "creativity", "consistency", "plot")
URL = "https://generativelanguage.googleapis.com/v1beta/openai/"
MODEL = "gemini-2.5-flash"  # the study's was its preview
ATTEMPTS = 3  # answers asked for before a story counts as rejected
# Of the client, for each answer: rate limits, time-outs and errors of the server.  Its pauses double from 0.5 s to 8 s and are shortened
# by up to a quarter: 66 to 87 s in all, so that a quota of one minute is outlived.
RETRIES = 14
SECONDS = 60.0  # that one request may take
SCHEMA = {
    "type": "object",
    "properties": {name: {"type": "integer", "minimum": 1, "maximum": 10} for name in CRITERIA},
    "required": list(CRITERIA),
    "additionalProperties": False,
}
SCHEMA_ASKED = {"response_format": {"type": "json_schema", "json_schema": {"name": "grades", "schema": SCHEMA, "strict": True}}}
WAYS = ({"temperature": 0} | SCHEMA_ASKED, {"temperature": 0}, {})  # of asking, the best first: some endpoints know no schema, or one temperature
FENCE = re.compile(r"\s*```(?:json)?(.*)```\s*", re.DOTALL | re.IGNORECASE)
PROMPT = """In the following exercise, the student is given a task of writing a short story. The student needs to come up with a \
coherent story that is graded on criteria mentioned below. The exercise tests the student's language abilities, creativity, and \
ability to follow directions.

{story}

Please provide your general assessment about the story written by the student. Consider the following aspects:
1. Grammar: Is the completion grammatically correct?
2. Creativity: Does the completion show creativity and original thought?
3. Consistency: Is the completion consistent with the beginning of the story?
4. Plot: Does the plot of the completion make sense and is it coherent throughout?

Now, grade the student's completion in terms of the following categories, each on a scale from 1 to 10.
"""  # the study's words; the lines below are ours, so that a program can read the answer
FORM = "The beginning that was given to the student ends at ***.\n" 'Answer with JSON alone: {"grammar": n, "creativity": n, "consistency": n, "plot": n}'
AGAIN = "\nThe last answer was not valid; expected are these four names, each once, each with a whole number from 1 to 10, and nothing else."


def _once(pairs: list[tuple]) -> dict:
    """A JSON object in which no name comes twice."""
    if len(content := dict(pairs)) < len(pairs):
        raise ValueError("a name comes twice")
    return content


def scores(answer: object) -> dict[str, int] | None:
    """The four scores if the answer is exactly that, else None."""
    try:
        fenced = FENCE.fullmatch(answer)
        content = json.loads(fenced[1] if fenced else answer, object_pairs_hook=_once)
        jsonschema.validate(content, SCHEMA)
    except (TypeError, ValueError, RecursionError, jsonschema.ValidationError):
        return None
    return {name: int(content[name]) for name in CRITERIA}  # JSON Schema takes 7.0 for an integer


class RefusedStory(Exception):
    """The endpoint does not take a request that it understands."""


@dataclass(frozen=True)
class Judge:
    key: str
    url: str = URL
    model: str = MODEL

    @classmethod
    def from_environment(cls) -> "Judge | None":
        """None without a key."""
        key = os.environ.get("RTX_JUDGE_KEY", "").strip()
        return cls(key, os.environ.get("RTX_JUDGE_URL") or URL, os.environ.get("RTX_JUDGE_MODEL") or MODEL) if key else None

    def __repr__(self) -> str:  # without the key, wherever it is printed
        return f"Judge(model={self.model!r})"

    def client(self):
        try:
            from openai import OpenAI
        except ImportError as error:
            raise RtxError("Grading needs the package openai, which is not installed; pip install openai.") from error
        return OpenAI(api_key=self.key, base_url=self.url, timeout=SECONDS, max_retries=RETRIES)

    def grade(self, stories: list[str]) -> list[dict[str, int] | None]:
        """Scores of each story, None where no answer was valid.  An endpoint that cannot be used at all is one sentence."""
        client, graded, refused, way = None, [], None, None
        for story in stories:
            found = self._kept(story)
            if found is None:
                client = client or self.client()
                try:
                    found, taken = self._ask(client, story, way or 0)
                    way = taken if way is None else way  # what the endpoint first took; a story that it takes otherwise changes nothing
                except RefusedStory as error:  # one story may be, all are not
                    refused = error
                if found is not None:
                    write_json(self._path(story), found)
            graded.append(found)
        if refused and not any(graded):
            raise RtxError(str(refused)) from None
        return graded

    def _path(self, story: str):
        identity = json.dumps([self.url, self.model, PROMPT, FORM, AGAIN, story])
        return build() / "cache" / "judge" / f"{hashlib.sha256(identity.encode()).hexdigest()[:32]}.json"

    def _kept(self, story: str) -> dict[str, int] | None:
        try:
            return scores(self._path(story).read_text(encoding="utf-8"))  # checked again: the file may be damaged
        except (OSError, UnicodeDecodeError):
            return None

    def _ask(self, client, story: str, way: int) -> tuple[dict[str, int] | None, int]:
        """The scores, None where no answer was valid, and the way of asking, from `way` on, that the endpoint took."""
        question = text = PROMPT.replace("{story}", story) + "\n" + FORM
        for _ in range(ATTEMPTS):
            answer, way = self._answer(client, text, way)
            if (found := scores(answer)) is not None:
                return found, way
            text = question + AGAIN * (answer is not None)
        return None, way

    def _answer(self, client, text: str, way: int) -> tuple[str | None, int]:
        """What the model answers, None where the reply is no reply, and the way of asking that the endpoint took."""
        from openai import APIConnectionError, APIStatusError, OpenAIError

        for taken in range(way, len(WAYS)):
            try:
                reply = client.chat.completions.create(model=self.model, messages=[{"role": "user", "content": text}], **WAYS[taken])
                return reply.choices[0].message.content or "", taken
            except APIStatusError as error:  # the server's own words stay out: some repeat the key
                refused = f"The judge's endpoint refuses with status {error.status_code}; check RTX_JUDGE_KEY, RTX_JUDGE_URL and RTX_JUDGE_MODEL."
                if error.status_code not in (400, 422):
                    raise RtxError(refused) from None
            except APIConnectionError as error:
                raise RtxError(f"The judge's endpoint cannot be reached ({type(error).__name__}); check the network and RTX_JUDGE_URL.") from None
            except (OpenAIError, ValueError, TypeError, AttributeError, IndexError):
                return None, taken
        raise RefusedStory(refused)  # asked in every way: it is this story that it does not take


def as_graded(sample: dict) -> str:
    """A story as the judge reads it, with the border of prompt and completion marked."""
    return f"{sample['prompt']}*** {sample['text']}"


def judge(settings: LanguageSettings, judge: Judge, source: str) -> list[Measurement]:
    """Grade the recorded samples of every model and seed; records the scores beside the runs."""
    made_by, made = measurement.made_by("judge"), []
    for model in settings.models:
        for seed in settings.seeds:
            record = store.find(source, settings.variant, model, seed)
            if record is None:
                continue
            graded = judge.grade([as_graded(sample) for sample in record["samples"]])
            made.append(measurement.save({
                "kind": "judge", "of": settings.variant, "name": f"{model}-seed{seed}", "model": model, "seed": seed,
                "protocol": record["protocol"], "data": record["data"], "environment": record["environment"], "run": record["key"], "texts_sha256": measurement.texts_sha256(record["samples"]),
                "judge": judge.model, "scores": graded, "rejected": graded.count(None), "code": made_by,
            }))  # fmt: skip
            print(f"{settings.variant} · {model} · seed {seed} · graded {len(graded) - graded.count(None)} of {len(graded)}", flush=True)
    return made


def main(arguments: list[str]) -> None:
    from rtx_core.corpora.sources import resolve

    if not arguments:
        raise RtxError("usage: python -m rtx_core.evaluation.judge EXPERIMENT [name=value …]")
    if (asked := Judge.from_environment()) is None:
        raise RtxError("Nothing was graded: the variable RTX_JUDGE_KEY is not set.")
    given = {name: yaml.safe_load(value) for name, _, value in (pair.partition("=") for pair in arguments[1:])}
    settings = language_settings(arguments[0], given)
    if not judge(settings, asked, resolve(settings.source)):
        raise RtxError(f"results/ holds no run of {settings.variant} to grade; train first: python -m rtx_core.run_language {arguments[0]} --run")


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except RtxError as error:
        sys.exit(str(error))
