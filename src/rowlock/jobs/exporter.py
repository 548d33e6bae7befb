"""An exporter: makes one file from one input. What `@app.exporter(…)` and `[exporters.NAME]` register."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, get_args

from rowlock.errors import ConfigurationError
from rowlock.jobs.bulk import Bulk
from rowlock.jobs.formats.encoding import EXTENSIONS, PACKED, content_type
from rowlock.jobs.inputs import Entry, IndexInput, is_safe, model_from_schema, validated, written
from rowlock.jobs.path import Key, PathTemplate, hashed, key_of
from rowlock.jobs.query import SqlQuery
from rowlock.queue.retry import Backoff

if TYPE_CHECKING:
    from pydantic import BaseModel

    from rowlock.databases.manager import DatabaseManager
    from rowlock.settings import ExporterSettings

Format = Literal["csv", "jsonl", "parquet"]
Compression = Literal["gzip", "zstd"]
DEFAULT_PATH = "{indexKey}_{effectiveDate}_{asofindicator}.{ext}"
FLOW_PREFIX = "export."


@dataclass(frozen=True, slots=True)
class ExportContext:
    """What a producer may need beside its input."""

    exporter: str
    key: str
    token: int
    check: Callable[[], None]
    progress: Callable[[float | None], None]
    databases: DatabaseManager | None = None


Producer = Callable[..., Iterable[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Exporter:
    """A named way to make a file: `produce(input)` or `produce(input, context)` yields rows, batches or bytes."""

    name: str
    produce: Producer | SqlQuery
    model: type[BaseModel] | Mapping[str, Any] = IndexInput
    format: Format = "csv"
    compression: Compression | None = None
    path: str | None = None
    key_fields: tuple[str, ...] = ()
    columns: tuple[str, ...] | None = None
    schema: Any = None  # a pyarrow schema, for Parquet
    max_attempts: int = 5
    max_deaths: int = 3
    backoff: Backoff = field(default_factory=Backoff)
    timeout: float | None = None
    concurrency: int = 8
    template: PathTemplate = field(init=False, repr=False)
    takes_context: bool = field(init=False, repr=False)
    bulk: Bulk | None = field(init=False, repr=False)
    all_count: bool = field(init=False, repr=False)
    loose: tuple[str, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._require(
            isinstance(self.name, str) and is_safe(self.name), "its name is letters, digits and . _ -"
        )
        self._require(self.format in EXTENSIONS, f"format is one of {', '.join(EXTENSIONS)}")
        self._require(
            self.compression in (None, *PACKED), f"compression is one of {', '.join(PACKED)}, or none"
        )
        if not inspect.isclass(self.model):
            self._set("model", model_from_schema(self.model, self.name))
        known = self._fields()
        self._set("all_count", not self.key_fields)
        self._set("key_fields", tuple(self.key_fields) or known)
        self._require(
            set(self.key_fields) <= set(known),
            f"its key has fields that the input has not: {self.key_fields}",
        )
        self._set("path", self.path or self._default_path())
        self._set("template", PathTemplate(self.path or ""))
        self.template.check(known, self.key_fields)
        if self.columns is not None:
            self._set("columns", tuple(self.columns))
        self._set("takes_context", self._check_producer(known))
        self._set("loose", tuple(name for name in self.key_fields if self._is_loose(name)))
        # A schema's model checks each input by itself.
        native = "model_validate" not in {name for base in self._model.__mro__[:-2] for name in vars(base)}
        native = native and not self.loose and self._model.model_config.get("extra") != "allow"
        self._set("bulk", Bulk(self._model, self.key_fields, self.template, self.ext) if native else None)

    @classmethod
    def declared(cls, name: str, settings: ExporterSettings) -> Exporter:
        """From `[exporters.NAME]` in rowlock.toml."""
        given: dict[str, Any] = settings.model_dump(
            exclude={"database", "query", "input", "retry_seconds", "retry_longest_seconds"},
            exclude_unset=True,
        )
        given["backoff"] = Backoff(settings.retry_seconds, settings.retry_longest_seconds)
        if settings.input is not None:
            given["model"] = settings.input
        return cls(name=name, produce=SqlQuery(settings.database, settings.query), **given)

    # -- what it is -------------------------------------------------------------------------------------------

    @property
    def flow_name(self) -> str:
        return f"{FLOW_PREFIX}{self.name}"

    @property
    def ext(self) -> str:
        """`csv`, `csv.gz`, `parquet`, …: Parquet is packed inside."""
        packed = PACKED[self.compression] if self.compression and self.format != "parquet" else ""
        return f"{EXTENSIONS[self.format]}{packed}"

    @property
    def content_type(self) -> str:
        return content_type(self.format, self.compression)

    @property
    def input_schema(self) -> dict[str, Any]:
        """Of its inputs, as part of a larger document: one that refers to its own parts is only told as an object."""
        schema = self._model.model_json_schema()
        return {"type": "object", "title": self.name} if '"$ref"' in json.dumps(schema) else schema

    # -- its inputs ---------------------------------------------------------------------------------------------

    def validate(self, raw: Mapping[str, Any]) -> BaseModel:
        """The input, checked; InvalidInput has the JSON pointer of the bad part."""
        fields = validated(self._model, raw)
        self.file(fields)  # whatever cannot be part of a path is refused now, not in a worker
        return fields

    def read(self, raw: Mapping[str, Any], limit: int) -> Entry:
        """The input, checked, as a job takes it: at most so many bytes of JSON."""
        fields = validated(self._model, raw)
        key = self._key(fields)
        file = self.template.fill(vars(fields), ext=self.ext, key=key)
        return Entry(key.text, file, written(fields, limit))

    def read_all(self, inputs: Sequence[Mapping[str, Any]], limit: int) -> dict[str, str] | None:
        """Key → payload of each input, if there is nothing wrong with any; otherwise `read` says what it is."""
        return None if self.bulk is None else self.bulk.read(inputs, limit)

    def key(self, fields: BaseModel) -> str:
        """The stable identity of an input, and of the artifact that is made from it."""
        return self._key(fields).text

    def file(self, fields: BaseModel) -> str:
        """The path of its file, inside the folder of its job."""
        return self.template.fill(vars(fields), ext=self.ext, key=self._key(fields))

    def _key(self, fields: BaseModel) -> Key:
        key = key_of(vars(fields), self.key_fields, _canonical, self.loose)
        if fields.model_extra and self.all_count:  # what the model does not name makes another file too
            return Key(hashed(_canonical([key.text, fields.model_extra]), 64), key.parts)
        return key

    # -- checks ------------------------------------------------------------------------------------------------

    @property
    def _model(self) -> type[BaseModel]:
        assert inspect.isclass(self.model)  # noqa: S101 - a schema has become one
        return self.model

    def _is_loose(self, name: str) -> bool:
        """May it be a number today and a text tomorrow?"""
        kind = self._model.model_fields[name].annotation
        kinds = [one for one in get_args(kind) or (kind,) if one is not type(None)]
        return len(kinds) != 1 or kinds[0] is Any or not inspect.isclass(kinds[0])

    def _fields(self) -> tuple[str, ...]:
        return tuple(self._model.model_fields)

    def _default_path(self) -> str:
        return DEFAULT_PATH if self.model is IndexInput else "{key}.{ext}"

    def _check_producer(self, known: tuple[str, ...]) -> bool:
        if isinstance(self.produce, SqlQuery):
            self.produce.check(known, f"exporter {self.name!r}")
            return False
        self._require(callable(self.produce), "its producer must be a function")
        asynchronous = inspect.iscoroutinefunction(self.produce) or inspect.isasyncgenfunction(self.produce)
        self._require(
            not asynchronous, "its producer must be a plain function or generator, not an async one"
        )
        return len(inspect.signature(self.produce).parameters) > 1

    def _require(self, condition: bool, message: str) -> None:
        if not condition:
            raise ConfigurationError(f"exporter {self.name!r}: {message}.")

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)


def _canonical(values: Any) -> str:
    return json.dumps(values, sort_keys=True, separators=(",", ":"), default=str)
