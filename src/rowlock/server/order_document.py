"""The order of a job in the document: what this very server takes, with its exporters and its settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rowlock.jobs.webhook import webhook_pattern

if TYPE_CHECKING:
    from rowlock.app import Rowlock
    from rowlock.jobs.exporter import Exporter

Schema = dict[str, Any]


def describe_order(order: Schema, app: Rowlock) -> Schema:
    """The schema of the model, made as narrow as what is taken here: one kind of order for each exporter."""
    properties = dict(order["properties"])
    properties["inputs"] = {
        **properties["inputs"],
        "maxItems": app.settings.max_job_inputs,
        "uniqueItems": True,
    }
    properties["webhookUrl"] = _webhook(properties["webhookUrl"], app.settings.webhook_hosts)
    general = {**order, "properties": properties}
    only = len(app.exporters) == 1
    kinds = [_kind(general, exporter, only=only) for exporter in app.exporters.values()]
    if len(kinds) > 1:
        return {"title": order["title"], "description": order["description"], "oneOf": kinds}
    return kinds[0] if kinds else general


def _kind(order: Schema, exporter: Exporter, *, only: bool) -> Schema:
    """An order for this exporter; its name may be left out where there is no other."""
    properties = dict(order["properties"])
    schema = exporter.input_schema
    properties["inputs"] = {**properties["inputs"], "items": schema}
    name = {"enum": [exporter.name, None]} if only else {"const": exporter.name}
    properties["exporter"] = {"title": "Exporter", **name}
    kind = {**order, "properties": properties}
    if not only:
        kind |= {"title": f"{order['title']} {exporter.name}", "required": [*order["required"], "exporter"]}
    if given := schema.get("examples"):
        kind["examples"] = [{"exporter": exporter.name, "inputs": given[:1]}]
    return kind


def _webhook(schema: Schema, hosts: list[str]) -> Schema:
    address, nothing = schema["anyOf"]
    allowed = [{**address, "pattern": webhook_pattern(hosts)}] if hosts else []
    return {**schema, "anyOf": [*allowed, nothing]}
