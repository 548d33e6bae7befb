-- Something happened to a job.
INSERT INTO rowlock.export_job_event (job_id, happened_at, kind, detail)
VALUES (%(job)s, rowlock.ledger_time(), %(kind)s, %(detail)s)
