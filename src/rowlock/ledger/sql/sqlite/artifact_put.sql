-- The registry points to the new file; in the transaction that completes the input that made it.
INSERT INTO export_artifact
    (exporter, artifact_key, fields, s3_path, job_key, record_id, token, row_count, byte_count, sha256, generated_at)
VALUES (:exporter, :key, :fields, :path, :job_key, :record_id, :token, :rows, :bytes,
        :sha256, ledger_time())
ON CONFLICT (exporter, artifact_key) DO UPDATE
SET fields = excluded.fields, s3_path = excluded.s3_path, job_key = excluded.job_key, record_id = excluded.record_id,
    token = excluded.token, row_count = excluded.row_count, byte_count = excluded.byte_count, sha256 = excluded.sha256,
    generated_at = excluded.generated_at
