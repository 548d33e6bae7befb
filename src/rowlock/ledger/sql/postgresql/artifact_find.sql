-- The newest file for an input, whichever job made it.
SELECT s3_path, job_key, row_count, byte_count, sha256, generated_at
FROM rowlock.export_artifact
WHERE exporter = %(exporter)s AND artifact_key = %(key)s
