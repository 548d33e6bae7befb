"""Settings: environment (`ROWLOCK_…`) over `rowlock.toml` over the defaults below."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError, model_validator
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from rowlock.errors import ConfigurationError
from rowlock.log import LogFormat  # noqa: TC001 - pydantic reads it at run time

DEFAULT_LEDGER_URL = "sqlite:///rowlock.db"


class DatabaseSettings(BaseModel):
    """`[databases.NAME]`: a database beside the ledger."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    url: SecretStr = Field(description="An SQLAlchemy URL.")
    pool_size: int = Field(5, ge=1, le=1000, description="Connections each process may hold at most.")


class ExporterSettings(BaseModel):
    """`[exporters.NAME]`: files from a query, without a line of Python."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    database: str = Field(description="The name of a database.")
    query: str = Field(description="A SELECT; `:field` stands for a field of the input.")
    format: str = Field("csv", description="csv, jsonl or parquet.")
    compression: str | None = Field(None, description="gzip or zstd.")
    path: str | None = Field(None, description="The file's name, with {fields} of the input.")
    input: dict[str, Any] | None = Field(None, description="A JSON Schema; otherwise the three index fields.")
    max_attempts: int = Field(5, description="After so many attempts that failed, an input is dead.")
    retry_seconds: float = Field(
        1,
        ge=0,
        description="A failed input waits up to this, then up to twice as long, and so on; with jitter.",
    )
    retry_longest_seconds: float = Field(300, ge=0, description="… and never longer than this.")
    timeout: float | None = Field(None, description="Seconds an attempt may take.")
    concurrency: int = Field(8, description="Files that are made at the same time in one worker.")


class Settings(BaseSettings):
    """Every knob, typed. Times are in seconds."""

    model_config = SettingsConfigDict(env_prefix="ROWLOCK_", extra="forbid", frozen=True)

    ledger_url: str = Field(DEFAULT_LEDGER_URL, description="Where the ledger is: an SQLAlchemy URL.")
    ledger_schema: str = Field(
        "rowlock", description="PostgreSQL: the schema that holds the ledger's tables."
    )
    pool_size: int = Field(10, ge=2, le=1000, description="Connections each process may hold at most.")
    transaction_pooler: bool = Field(
        default=False,
        description="True behind PgBouncer in transaction mode: no prepared statements, no LISTEN.",
    )
    lease_seconds: float = Field(30, ge=0.5, le=86400, description="Silent for so long, an instance is dead.")
    grace_seconds: float = Field(
        30, ge=0, description="After SIGTERM, running handlers may finish for so long."
    )
    poll_seconds: float = Field(1, gt=0, le=3600, description="How often an idle worker looks by itself.")
    max_prefetch: int = Field(
        1000, ge=0, le=10000, description="Records a flow may hold beyond its running ones."
    )
    max_payload_bytes: int = Field(1024 * 1024, ge=1, description="Largest payload or result, as JSON.")
    max_request_bytes: int = Field(
        32 * 1024 * 1024, ge=1024, description="Largest body that the server takes in a request."
    )
    retention_days: float = Field(30, gt=0, description="How long settled records and their keys are kept.")
    prune_batch: int = Field(
        1000, ge=1, le=100_000, description="Rows one pruning statement removes at most."
    )

    log_format: LogFormat = Field(
        "text", description="How `rowlock worker` writes its log: text, or json (one object a line)."
    )
    reuse_enabled: bool = Field(
        default=True, description="Jobs: a file that an earlier job made may be used again."
    )
    reuse_days: int = Field(
        7,
        ge=0,
        le=36500,
        description="Jobs: not for effective dates of the last days, which may still change.",
    )
    finalizer_seconds: float = Field(
        1, gt=0, le=3600, description="Jobs: how often ends are announced and repaired."
    )
    sweep_after_seconds: float = Field(
        86400,
        ge=60,
        description="Jobs: so long after a job's end, what its lost attempts have left is deleted. Longer than any attempt.",
    )
    max_job_inputs: int = Field(
        100_000, ge=1, le=1_000_000, description="Jobs: inputs that one may have at most."
    )
    webhook_hosts: list[str] = Field(
        [],
        description='Jobs: hosts that webhooks may go to, as a JSON list: ["hooks.example.com", "*.corp"].',
    )
    webhook_secret: SecretStr = Field(SecretStr(""), description="Jobs: webhooks are signed with it.")
    databases: dict[str, DatabaseSettings] = Field(
        {}, description="Named databases beside the ledger: [databases.NAME] with url and pool_size."
    )
    database_prefix: str = Field(
        "",
        description="Databases are also read from the variables PREFIX_NAME_CONNECTION_STRING and PREFIX_NAME_TYPE.",
    )
    exporters: dict[str, ExporterSettings] = Field(
        {}, description="Exporters that are a query: [exporters.NAME] with database, query, format, path."
    )
    storage_url: str = Field(
        "file:exports",
        description="Where files are kept: s3://bucket/prefix, gs://…, az://… or file:///folder.",
    )
    storage_endpoint: str = Field("", description="S3: the server's address, if it is not Amazon's.")
    storage_region: str = Field("", description="S3: the region.")
    storage_path_style: bool = Field(
        default=True, description="S3: the bucket's name is in the path, not in the host's name."
    )
    storage_access_key_id: str = Field(
        "", description="S3: otherwise AWS_ACCESS_KEY_ID, or the machine's role."
    )
    storage_secret_access_key: SecretStr = Field(
        SecretStr(""), description="S3: otherwise AWS_SECRET_ACCESS_KEY."
    )
    storage_session_token: SecretStr = Field(SecretStr(""), description="S3: otherwise AWS_SESSION_TOKEN.")

    @property
    def heartbeat_seconds(self) -> float:
        """A third of the lease, so that two heartbeats may fail before anything is lost."""
        return self.lease_seconds / 3

    @model_validator(mode="after")
    def _schema_is_an_identifier(self) -> Self:
        name = self.ledger_schema
        if not (name.isidentifier() and name.isascii() and len(name) <= 48):
            raise ValueError(f"ledger_schema {name!r} must be letters, digits and _, at most 48 of them")
        return self

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - not read: containers set real variables
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        toml = TomlConfigSettingsSource(settings_cls, toml_file=config_file())
        return init_settings, env_settings, toml


def config_file() -> Path:
    """`rowlock.toml` in the working directory, or the file that ROWLOCK_CONFIG names."""
    return Path(os.environ.get("ROWLOCK_CONFIG", "rowlock.toml"))


def load_settings(**overrides: object) -> Settings:
    """Read the settings; a bad one is named together with where it came from."""
    named = os.environ.get("ROWLOCK_CONFIG")
    if named and not Path(named).is_file():
        raise ConfigurationError(f"ROWLOCK_CONFIG names {named}, and there is no such file.")
    try:
        return Settings(**{k: v for k, v in overrides.items() if v is not None})  # type: ignore[arg-type]
    except ValidationError as error:
        lines = [
            f"  {'.'.join(map(str, e['loc'])) or 'settings'}: {e['msg']}"
            for e in error.errors(include_input=False)
        ]
        raise ConfigurationError(
            "These settings cannot be used (from ROWLOCK_* variables or "
            f"{config_file()}):\n" + "\n".join(lines)
        ) from None
    except ValueError as error:  # TOML that does not parse
        raise ConfigurationError(f"{config_file()} cannot be read: {error}") from error
