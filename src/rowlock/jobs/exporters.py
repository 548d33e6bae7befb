"""The exporters of a program: from `@app.exporter(…)`, and from `[exporters.NAME]` in rowlock.toml."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from rowlock.errors import ConfigurationError
from rowlock.jobs.exporter import Exporter

if TYPE_CHECKING:
    from rowlock.settings import Settings


class Exporters(Mapping[str, Exporter]):
    """By name."""

    def __init__(self, settings: Settings) -> None:
        self._exporters = {name: Exporter.declared(name, one) for name, one in settings.exporters.items()}

    def add(self, exporter: Exporter) -> None:
        if exporter.name in self._exporters:
            raise ConfigurationError(f"exporter {exporter.name!r} is there already.")
        self._exporters[exporter.name] = exporter

    def __getitem__(self, name: str) -> Exporter:
        if name not in self._exporters:
            raise ConfigurationError(
                f"There is no exporter {name!r}; there are: {', '.join(self._exporters) or 'none'}."
            )
        return self._exporters[name]

    def __contains__(self, name: object) -> bool:
        return name in self._exporters

    def __iter__(self) -> Iterator[str]:
        return iter(self._exporters)

    def __len__(self) -> int:
        return len(self._exporters)
