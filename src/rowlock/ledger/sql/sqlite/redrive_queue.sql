-- A dead or cancelled record becomes pending again, under the same id and key, with fresh attempts. What it went
-- through stays in record_attempts; the token goes on rising. A job's input opens it again.
INSERT INTO processing_queue
    (id, token, created_at, run_at, attempt, priority, deaths, redrives, ready, status, flow_name, record_key, payload, job_id)
SELECT id, token + 1, created_at, ledger_time(), 0, priority, 0, redrives + 1, 1, 'pending', flow_name, record_key, payload,
       (SELECT j.job_id FROM export_job AS j
        WHERE h.flow_name = 'export.' || j.exporter AND j.job_key = substr(h.record_key, 1, instr(h.record_key, '/') - 1))
FROM processing_history AS h WHERE id = :id AND status IN ('dead', 'cancelled')
RETURNING id, job_id
