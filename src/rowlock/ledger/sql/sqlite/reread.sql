-- What became of a settling whose outcome is not known: still held, settled under this very token, or lost.
SELECT
    CASE
        WHEN EXISTS (SELECT 1 FROM processing_queue q WHERE q.id = :id AND q.token = :token) THEN 'held'
        WHEN EXISTS (SELECT 1 FROM processing_history h WHERE h.id = :id AND h.token = :token)
            THEN 'settled'
        WHEN EXISTS (SELECT 1 FROM record_attempts a
                     WHERE a.record_id = :id AND a.token = :token AND a.outcome <> 'died')
            THEN 'settled'
        ELSE 'lost'
    END AS fate
