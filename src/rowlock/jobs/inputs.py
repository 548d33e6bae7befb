"""What an exporter is asked for: a pydantic model, or a JSON Schema; by default an index, a date and an indicator."""

from __future__ import annotations

import re
from datetime import date
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictInt,
    StrictStr,
    ValidationError,
    create_model,
    model_serializer,
)
from pydantic_core import PydanticSerializationError

from rowlock.errors import ConfigurationError, InvalidInput
from rowlock.queue.payload import encode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from pydantic.config import JsonDict

MAX_PART_LENGTH = 100
_LETTER = "[A-Za-z0-9_+=@-]"
SAFE = rf"{_LETTER}+(?:\.{_LETTER}+)*\.?"
_SAFE = re.compile(SAFE)


@lru_cache(maxsize=4096)  # for one input it is asked several times, and many inputs share a part
def is_safe(part: str) -> bool:
    """May this be part of a path? No slash, no `..`, nothing hidden, nothing that cannot be printed."""
    return len(part) <= MAX_PART_LENGTH and _SAFE.fullmatch(part) is not None


def check_safe(part: str) -> str:
    if not is_safe(part):
        raise ValueError(
            f"{part[:MAX_PART_LENGTH]!r} is not safe in a file's name: it has 1 to {MAX_PART_LENGTH} letters, digits "
            "and . _ + = @ -, does not begin with a dot and has no two dots in a row"
        )
    return part


@lru_cache(maxsize=4096)
def _check_date(number: int) -> int:
    try:
        date(number // 10_000, number // 100 % 100, number % 100)
    except ValueError as error:
        raise ValueError(f"{number} is not a date: it is written YYYYMMDD, as in 20240202") from error
    return number


def whole(value: Any) -> Any:
    """JSON has one kind of number: 5.0 is an integer there, and true is none."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


WholeNumber = Annotated[StrictInt, BeforeValidator(whole)]
SafeText = Annotated[
    StrictStr,
    AfterValidator(check_safe),
    Field(
        json_schema_extra={
            "pattern": f"^{SAFE}$",
            "minLength": 1,
            "maxLength": MAX_PART_LENGTH,
        }
    ),
]
_DATE: JsonDict = {"description": "YYYYMMDD", "minimum": 10101, "maximum": 99991231, "examples": [20240202]}
_EXAMPLE: JsonDict = {"indexKey": "ABC", "effectiveDate": 20240202, "asofindicator": "CLS"}


class IndexInput(BaseModel):
    """The built-in input: which index, on which day, as of what."""

    model_config = ConfigDict(extra="forbid", frozen=True, json_schema_extra={"examples": [_EXAMPLE]})

    indexKey: SafeText  # noqa: N815 - the contract's names
    effectiveDate: Annotated[WholeNumber, AfterValidator(_check_date), Field(json_schema_extra=_DATE)]  # noqa: N815
    asofindicator: SafeText


def validated(model: type[BaseModel], raw: Any) -> BaseModel:
    """The input as the model has it; InvalidInput with a pointer to the first bad part."""
    try:
        return model.model_validate(raw)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        pointer = pointer_of(first["loc"])
        raise InvalidInput(f"{pointer or 'the input'}: {first['msg']}", pointer=pointer) from None


class Entry(NamedTuple):
    """An input as its job takes it: what it is known by, its file's name, and the JSON that its record carries."""

    key: str
    file: str
    payload: str


def written(fields: BaseModel, limit: int) -> str:
    """The input as JSON, at most so many bytes long."""
    try:
        data = fields.__pydantic_serializer__.to_json(fields)
    except PydanticSerializationError as error:  # half a character, as in "\ud800"
        raise InvalidInput(f"the input cannot be written as JSON: {error}", pointer="") from None
    if b"null" in data or len(data) > limit:  # it writes NaN like that too, which is no JSON
        return encode(fields.model_dump(mode="json"), limit, "the input")
    return data.decode()


def pointer_of(parts: Iterable[str | int]) -> str:
    """A JSON pointer, as RFC 6901 writes it."""
    return "".join(f"/{str(part).replace('~', '~0').replace('/', '~1')}" for part in parts)


def model_from_schema(schema: Mapping[str, Any], name: str) -> type[BaseModel]:
    """A model that is what the schema allows. Its fields are the schema's properties."""
    check = _checker(schema, name)
    properties = schema.get("properties")
    if not isinstance(properties, dict) or not properties:
        raise ConfigurationError(
            f"exporter {name!r}: its schema has no properties, and so its input no fields."
        )
    for field in properties:
        if not field.isidentifier() or field.startswith("_") or hasattr(BaseModel, field):
            raise ConfigurationError(
                f"exporter {name!r}: the property {field!r} cannot be the name of a field."
            )
    required = set(schema.get("required", ()))
    fields: dict[str, Any] = {field: (Any, ... if field in required else None) for field in properties}

    class SchemaInput(BaseModel):
        model_config = ConfigDict(extra="allow", frozen=True)

        @classmethod
        def model_validate(cls, obj: Any, **options: Any) -> Any:
            check(obj)
            return super().model_validate(obj, **options)

        @model_serializer(mode="wrap")
        def _as_given(self, dump: Callable[[Any], dict[str, Any]]) -> dict[str, Any]:
            """What was left out stays out: a schema may not take a null in its place."""
            return {field: value for field, value in dump(self).items() if field in self.model_fields_set}

        @classmethod
        def model_json_schema(cls, *_: Any, **__: Any) -> dict[str, Any]:
            return dict(schema)

    return create_model(f"{name}_input", __base__=SchemaInput, **fields)


def _checker(schema: Mapping[str, Any], name: str) -> Callable[[Any], None]:
    try:
        import jsonschema_rs  # noqa: PLC0415 - an extra: only whoever has a schema needs it
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            f"exporter {name!r}: a JSON Schema needs jsonschema-rs. Install it: pip install 'rowlock[jobs]'"
        ) from error

    def retrieve(uri: str) -> Any:
        raise ValueError(f"{uri} is not read: a schema has to be whole")

    try:
        validator = jsonschema_rs.validator_for(dict(schema), retriever=retrieve)
    except (ValueError, jsonschema_rs.ReferencingError) as error:
        raise ConfigurationError(f"exporter {name!r}: its schema cannot be used: {error}") from error

    def check(raw: Any) -> None:
        for error in validator.iter_errors(raw):
            pointer = pointer_of(error.instance_path)
            raise InvalidInput(f"{pointer or 'the input'}: {error.message}", pointer=pointer)

    return check
