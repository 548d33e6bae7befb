"""`rowlock records`: look at records, cancel them, let them run again."""

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rowlock.cli.ledgers import open_ledger
from rowlock.cli.options import AsJson, FlowFilter, LedgerUrl, Limit, Reason, RecordName, RecordNames, Yes
from rowlock.cli.output import confirm, fail, note, printable, say, say_json, say_table, since, stamp
from rowlock.errors import NotFound, Refused

if TYPE_CHECKING:
    from rowlock.ledger.ledger import Ledger

group = typer.Typer(
    name="records", no_args_is_help=True, help="Look at records, cancel them, run them again."
)


@group.command("list")
def list_(
    *,
    flow: FlowFilter = None,
    status: Annotated[
        str | None,
        typer.Option(
            help="pending, processing, retry_wait, completed, dead or cancelled.", show_default=False
        ),
    ] = None,
    limit: Limit = 50,
    before: Annotated[
        int | None, typer.Option(metavar="ID", help="Only records before this one.", show_default=False)
    ] = None,
    as_json: AsJson = False,
    ledger: LedgerUrl = None,
) -> None:
    """List records, newest first.

    Example: rowlock records list --flow score_survey --status retry_wait
    """
    from rowlock.queue.inspector import Inspector

    with open_ledger(ledger) as opened:
        found = Inspector(opened).records(flow=flow, status=status, limit=limit, before=before)
        now = opened.now()
    if as_json:
        say_json(found)
    elif not found:
        say("No records" + (f" that are {status}" if status else "") + (f" in {flow}" if flow else "") + ".")
    else:
        rows = (
            (one["id"], one["flow"], one["key"], one["status"], one["attempt"], since(one["created_at"], now), _remark(one, now))
            for one in found
        )  # fmt: skip
        say_table((">id", "flow", "key", "status", ">tries", ">enqueued", "remark"), rows)
        if len(found) == limit:
            note(f"There may be more: --before {found[-1]['id']}")


def _remark(record: dict[str, Any], now: float) -> str:
    match record["status"]:
        case "pending" | "retry_wait" if record["run_at"].timestamp() > now:
            return f"runs {since(record['run_at'], now)}"
        case "processing":
            done = "" if record["progress"] is None else f", {record['progress']:.0%} done"
            return f"held by {record['holder']}{done}"
        case "completed":
            return since(record["settled_at"], now)
    return record["reason"] or ""


@group.command()
def show(record: RecordName, as_json: AsJson = False, ledger: LedgerUrl = None) -> None:
    """Show everything about one record: what it carries, its result, and every failed attempt."""
    from rowlock.queue.inspector import Inspector

    with open_ledger(ledger) as opened:
        inspector = Inspector(opened)
        found = inspector.record(inspector.find(record))
        now = opened.now()
    if as_json:
        say_json(found)
        return
    say(f"Record {found['id']}: {found['flow']}/{found['key']}")
    for name, value in _facts(found, now):
        say(f"  {name:<12}{value}")
    for attempt in found["attempts"]:
        say(_attempt(attempt))


def _facts(record: dict[str, Any], now: float) -> list[tuple[str, str]]:
    def time(name: str) -> str:
        moment = record[name]
        return f"{stamp(moment)} ({since(moment, now)})" if moment else ""

    holder = record["held_by"]
    facts = [
        ("status", record["status"] + (f": {record['reason']}" if record["reason"] else "")),
        ("fingerprint", record["fingerprint"] or ""),
        ("held by", f"instance {holder['id']} ({holder['name']})" if holder else ""),
        ("progress", "" if record["progress"] is None else f"{record['progress']:.0%}"),
        ("priority", str(record["priority"])),
        ("attempt", str(record["attempt"])),
        ("deaths", str(record["deaths"]) if record["deaths"] else ""),
        ("redrives", str(record["redrives"]) if record["redrives"] else ""),
        ("token", str(record["token"])),
        ("enqueued", time("created_at")),
        ("runs", time("run_at") if record["status"] in ("pending", "retry_wait") else ""),
        ("claimed", time("claimed_at")),
        ("settled", time("settled_at")),
        ("payload", json.dumps(record["payload"], ensure_ascii=False)),
        (
            "result",
            json.dumps(record["result"], ensure_ascii=False) if record["status"] == "completed" else "",
        ),
    ]
    return [(name, value) for name, value in facts if value]


def _attempt(attempt: dict[str, Any]) -> str:
    error = ": ".join(filter(None, (attempt["error_type"], attempt["message"])))
    by = f" on instance {attempt['instance_id']}" if attempt["instance_id"] else ""
    lines = [
        f"\nAttempt {attempt['attempt']} {attempt['outcome']}{by}, {stamp(attempt['ended_at'])}: {error}"
    ]
    if attempt["traceback"]:
        lines += [f"  {line}" for line in attempt["traceback"].rstrip().splitlines()]
    return printable("\n".join(lines))


@group.command()
def cancel(records: RecordNames, reason: Reason = None, yes: Yes = False, ledger: LedgerUrl = None) -> None:
    """Cancel records that are not settled. The result of one that runs now will be refused."""
    from rowlock.queue.inspector import Inspector
    from rowlock.queue.operations import status_of

    with open_ledger(ledger) as opened:
        inspector = Inspector(opened)
        ids = list(dict.fromkeys(inspector.find(name) for name in records))
        confirm(f"Cancel {len(ids)} record{'s' if len(ids) > 1 else ''}?", yes=yes)
        done = opened.cancel(ids, reason or "cancelled by hand")
        refused = [f"record {id_} is already {status_of(opened, id_)}" for id_ in ids if id_ not in done]
    say(f"{len(done)} cancelled.")
    if refused:
        fail(f"{len(refused)} could not be cancelled: {'; '.join(refused)}.")


@group.command()
def retry(records: RecordNames, ledger: LedgerUrl = None) -> None:
    """Run records again: dead and cancelled ones are driven again, waiting ones may run now."""
    with open_ledger(ledger) as opened:
        refused = [error for name in records if (error := _retry(opened, name))]
    if refused:
        fail("\n".join(refused))


def _retry(ledger: "Ledger", name: str) -> str | None:
    from rowlock.queue.inspector import Inspector
    from rowlock.queue.operations import retry

    try:
        record_id = Inspector(ledger).find(name)
        done = retry(ledger, record_id)
    except (NotFound, Refused) as error:
        return str(error)
    say(f"Record {record_id} " + ("is driven again." if done == "redriven" else "may run now."))
    return None
