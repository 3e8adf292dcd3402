"""Stories graded by a language model, with the study's prompt, through any endpoint of OpenAI's protocol.

`RTX_JUDGE_KEY`, `RTX_JUDGE_URL` and `RTX_JUDGE_MODEL` name it; the key is shown nowhere.  An answer that is not four
whole numbers from 1 to 10 is asked for again, and in the end the story counts as rejected; an endpoint without a usable
reply ends the command and leaves the records as they were.
"""

import os
import re
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter, ValidationError

from rtx_core.errors import RtxError

URL = "https://generativelanguage.googleapis.com/v1beta/openai/"
MODEL = "gemini-2.5-flash"  # the study's was its preview
ATTEMPTS = 3  # answers that are not valid until a story is rejected
RETRIES = 18  # of a request that fails: the client's pauses double from half a second to eight, two minutes in all
PROMPT = Path(__file__).with_name("judge.txt").read_text(encoding="utf-8")
CRITERIA = Literal["grammar", "creativity", "consistency", "plot"]
SCORES = TypeAdapter(dict[CRITERIA, Annotated[int, Field(strict=True, ge=1, le=10)]])


def judge_model() -> str:
    return os.environ.get("RTX_JUDGE_MODEL") or MODEL


def grade(client, story: str) -> dict[str, int] | None:
    """The scores of a story; None where no answer was valid."""
    messages = [{"role": "user", "content": PROMPT.replace("{story}", story)}]
    for _ in range(ATTEMPTS):
        reply = client.chat.completions.create(model=judge_model(), messages=messages, temperature=0)
        answer = re.sub(r"^\s*```(json)?|```\s*$", "", reply.choices[0].message.content or "")
        with suppress(ValidationError):
            scores = SCORES.validate_json(answer)
            if len(scores) == 4:
                return scores


def identity(record) -> dict:
    return {"judge": judge_model()}  # another one has given no scores yet


def of_run(record, study) -> list[tuple]:
    from openai import OpenAI, OpenAIError

    if not (key := os.environ.get("RTX_JUDGE_KEY", "").strip()):
        raise RtxError("Nothing was graded: the variable RTX_JUDGE_KEY is not set.")
    client = OpenAI(api_key=key, base_url=os.environ.get("RTX_JUDGE_URL") or URL, max_retries=RETRIES)
    try:
        graded = [grade(client, f"{sample['prompt']}*** {sample['text']}") for sample in record["samples"]]
    except (OpenAIError, AttributeError, IndexError, TypeError, ValueError) as error:  # whose words may repeat the key
        problem = f"The judge's endpoint gives no usable reply ({type(error).__name__})"
        raise RtxError(f"{problem}; check RTX_JUDGE_KEY, RTX_JUDGE_URL, RTX_JUDGE_MODEL.") from None
    if not any(graded):
        raise RtxError(f"{judge_model()} gave no valid answer for any of {len(graded)} stories.")
    suffix = [re.sub(r"[^\w.]+", "-", judge_model())]
    return [({"suffix": suffix, "scores": graded, "rejected": graded.count(None)}, None)]
