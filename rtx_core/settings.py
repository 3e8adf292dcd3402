"""What every set of settings shares: types, ranges and unknown names are checked, and an error is one sentence."""

import json
from contextlib import suppress
from typing import Annotated, Any, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, TypeAdapter, ValidationError, field_validator

from rtx_core.errors import RtxError, unknown

LARGEST = 2**31 - 1  # of whole numbers: no array is longer

JSON_TYPES = {"integer": "int", "number": "float", "boolean": "bool", "string": "str", "null": "null"}
BOUNDS = {"exclusiveMinimum": ">", "minimum": ">=", "exclusiveMaximum": "<", "maximum": "<="}


def _number(value: Any) -> Any:
    if isinstance(value, bool):
        raise ValueError("it must be a number")
    return value


PositiveInt = Annotated[int, Field(gt=0, le=LARGEST)]
NaturalInt = Annotated[int, Field(ge=0, le=LARGEST)]
AtLeastTwo = Annotated[int, Field(ge=2, le=LARGEST)]
Layers = Annotated[int, Field(gt=0, le=1000)]  # or passes; no known model has more
# Not strict: YAML reads 1e-4 as text
PositiveFloat = Annotated[float, Field(gt=0, allow_inf_nan=False, strict=False), BeforeValidator(_number)]
NaturalFloat = Annotated[float, Field(ge=0, allow_inf_nan=False, strict=False), BeforeValidator(_number)]
# Of something, never none of it
Share = Annotated[float, Field(gt=0, le=1, allow_inf_nan=False, strict=False), BeforeValidator(_number)]
Probability = Annotated[float, Field(ge=0, lt=1, allow_inf_nan=False, strict=False), BeforeValidator(_number)]


class Settings(BaseModel):
    """Frozen settings with strict types; `replace` gives a changed copy, checked anew."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, protected_namespaces=())

    def __init__(self, **values: Any):
        try:
            super().__init__(**values)
        except ValidationError as error:
            problem = error.errors()[0]
            name = ".".join(map(str, problem["loc"]))
            if problem["type"] == "extra_forbidden":
                raise unknown("setting", name, type(self).model_fields) from None
            if problem["type"] == "missing":
                raise RtxError(f"{type(self).__name__} has no {name}; give it one, or a default.") from None
            reason = problem["msg"].removeprefix("Value error, ").rstrip(".")
            if not name:
                raise RtxError(f"{reason}.") from None
            reason = f"{reason[0].lower()}{reason[1:]}".replace("input should", "it must")
            received = " ".join(repr(problem["input"]).split())
            raise RtxError(f"{name} is {received:.80}; {reason}.") from None

    @field_validator("*", mode="before")
    @classmethod
    def _from_json(cls, value: Any, info: Any) -> Any:
        """Tuples, and settings within settings, as a record or a file of weights holds them."""
        if isinstance(value, (list, dict)):
            with suppress(TypeError, ValueError):  # what does not fit is told as any other value is
                kind = TypeAdapter(cls.model_fields[info.field_name].annotation or Any)
                return kind.validate_json(json.dumps(value), strict=True)
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        if not name.startswith("_"):
            do = "replace() gives a changed copy, and functools.cached_property keeps what is computed"
            raise RtxError(f"{type(self).__name__} does not change, and {name} was to be set; {do}.")
        super().__setattr__(name, value)

    def check_recordable(self) -> None:
        """An error unless a file of JSON can hold these settings."""
        try:
            content = json.dumps(self.model_dump(mode="json"), ensure_ascii=False, allow_nan=False).encode()
            if type(self)(**json.loads(content)) != self:
                raise ValueError("they are others when they are read again")
        except (TypeError, ValueError) as error:
            problem = f"A record cannot hold the settings of {type(self).__name__} ({str(error).rstrip('.'):.200})"
            raise RtxError(f"{problem}; use finite numbers, texts, and tuples of them.") from error

    def replace(self, **changes: Any) -> Self:
        return type(self)(**{**self.model_dump(), **changes})

    def changes(self, default: "Settings") -> dict[str, Any]:
        """The settings that are not as usual, in the order of their class."""
        return {key: value for key, value in self if value != getattr(default, key)}

    @classmethod
    def defaults(cls) -> dict[str, Any]:
        """The default of every setting that has one."""
        return {name: field.default for name, field in cls.model_fields.items() if not field.is_required()}

    @classmethod
    def names(cls) -> list[str]:
        return list(cls.model_fields)

    @classmethod
    def kinds(cls) -> dict[str, str]:
        """What each setting may be: "int > 0", "none | add | linear"."""
        return {name: _kind(schema) for name, schema in cls.model_json_schema()["properties"].items()}


def _kind(schema: dict) -> str:
    if "anyOf" in schema:
        return " | ".join(map(_kind, schema["anyOf"]))
    if "enum" in schema:
        return " | ".join(map(str, schema["enum"]))
    kind = JSON_TYPES.get(schema.get("type", ""), str(schema.get("const", "any")))
    bounds = {sign: schema[name] for name, sign in BOUNDS.items() if schema.get(name, LARGEST) != LARGEST}
    return " ".join([kind, *(f"{sign} {value:g}" for sign, value in bounds.items())])
