-- What became of settlings whose commit's reply was lost: still held (not applied), settled (applied under
-- this very token, which only its holder can have done), or neither (lost to somebody else).
SELECT s.id,
       CASE
           WHEN EXISTS (SELECT 1 FROM rowlock.processing_queue q WHERE q.id = s.id AND q.token = s.token)
               THEN 'held'
           WHEN EXISTS (SELECT 1 FROM rowlock.processing_history h
                        WHERE h.id = s.id AND h.token = s.token)
               THEN 'settled'
           WHEN EXISTS (SELECT 1 FROM rowlock.record_attempts a
                        WHERE a.record_id = s.id AND a.token = s.token AND a.outcome <> 'died')
               THEN 'settled'
           ELSE 'lost'
       END AS fate
FROM unnest(%(ids)b::bigint[], %(tokens)b::bigint[]) AS s (id, token)
