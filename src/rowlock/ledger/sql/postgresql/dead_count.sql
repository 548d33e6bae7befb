-- How many dead letters a filter names: the dry run of a re-drive.
SELECT count(*) AS records
FROM rowlock.processing_history
WHERE status = 'dead'
  AND (%(flow)s::text IS NULL OR flow_name = %(flow)s)
  AND (%(fingerprint)s::text IS NULL OR fingerprint = %(fingerprint)s)
