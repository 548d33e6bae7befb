"""Two monitors and a report. Each monitor runs on one instance only, and on another when that one is killed.

`rowlock run monitors` is one instance. Start as many as you like, in as many containers as you like.
"""

import feeds

from rowlock import LeaseTransaction, Record, Rowlock, ServiceRun

app = Rowlock()  # sqlite:///rowlock.db here, or what ROWLOCK_LEDGER_URL says
alerts = app.outbox("alert")
edgar = app.limit("sec.gov", rate="10/s")  # the whole fleet together, so that nobody bans us


@app.service("edgar_monitor", every=0.5, ttl=2, limit=edgar)
def edgar_monitor(run: ServiceRun) -> None:
    """A filing, and the record that alerts, are one commit; and only while this instance is the monitor."""
    filings = feeds.latest_filings()
    with run.transaction() as tx:
        for filing in filings:
            alerts.insert_once(
                tx,
                "edgar_filings",
                filing,
                unique=["accession_number"],
                message={"text": f"{filing['company']} has filed {filing['accession_number']}"},
            )
        note_poll(tx, run)


@app.service("halt_monitor", ttl=2)
def halt_monitor(run: ServiceRun) -> None:
    """A function that runs on: it looks at `run` to know when it must stop."""
    while run.wait(0.5):
        with run.transaction() as tx:
            for halt in feeds.halts():
                alerts.insert_once(
                    tx,
                    "halt_events",
                    halt,
                    unique=["ticker", "halt_time"],
                    message={"text": f"{halt['ticker']} is halted at {halt['halt_time']}"},
                )
            note_poll(tx, run)


def note_poll(tx: LeaseTransaction, run: ServiceRun) -> None:
    tx.execute("INSERT INTO polls VALUES (:service, :token)", {"service": run.name, "token": run.token})


@app.flow("alert")
def send_alert(record: Record) -> None:
    """Stands in for an e-mail: real ones are given record.idempotency_key."""
    with record.transaction() as tx:
        tx.execute("INSERT INTO sent_alerts VALUES (:text)", record.payload)


@app.schedule("*/2 * * * * *")
def report(record: Record) -> None:
    """Every two seconds here; a real one says "0 6 * * *", tz="Europe/Prague"."""
    with record.transaction() as tx:
        found = tx.execute("SELECT count(*) FROM edgar_filings").scalar()
        tx.execute(
            "INSERT INTO reports VALUES (:tick, :filings)", {"tick": record.payload["tick"], "filings": found}
        )
