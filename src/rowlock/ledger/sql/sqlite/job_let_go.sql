-- What the job's end had held back may run.
UPDATE processing_queue SET ready = 1, status = 'pending', run_at = ledger_time()
WHERE job_id = :job AND holder IS NULL AND NOT ready AND run_at >= 253370764800
