-- A file that is gone is not offered again.
DELETE FROM export_artifact WHERE exporter = :exporter AND artifact_key = :key AND s3_path = :path
