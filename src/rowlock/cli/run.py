"""`rowlock run`: everything that a program has, as one instance."""

from rowlock import log
from rowlock.cli.loading import load_app_on
from rowlock.cli.options import AppTarget, Concurrency, Flows, InstanceName, LedgerUrl, names


def run(
    target: AppTarget,
    *,
    flows: Flows = None,
    concurrency: Concurrency = None,
    name: InstanceName = None,
    ledger: LedgerUrl = None,
) -> None:
    """Run a program's services, schedules and workers together until SIGTERM or Ctrl-C.

    Start it as often as you like: each service runs on one of them, each tick is enqueued once, and the records are
    shared. The first signal lets what runs finish within ROWLOCK_GRACE_SECONDS; a second one leaves at once.

    Example: rowlock run monitors:app
    """
    from rowlock.settings import load_settings

    log.set_up(load_settings().log_format)
    with load_app_on(ledger, target) as app:
        app.program(flows=names(flows), concurrency=concurrency, name=name).run()
