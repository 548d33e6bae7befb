-- A file that is gone is not offered again.
DELETE FROM rowlock.export_artifact WHERE exporter = %(exporter)s AND artifact_key = %(key)s AND s3_path = %(path)s
