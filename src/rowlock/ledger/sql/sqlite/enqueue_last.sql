-- The highest id handed out so far.
SELECT seq AS id FROM sqlite_sequence WHERE name = 'record_keys'
