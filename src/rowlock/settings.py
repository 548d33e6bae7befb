"""Settings: environment (`ROWLOCK_…`) over `rowlock.toml` over the defaults below."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Self

from pydantic import Field, ValidationError, model_validator
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from rowlock.errors import ConfigurationError

DEFAULT_LEDGER_URL = "sqlite:///rowlock.db"


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
