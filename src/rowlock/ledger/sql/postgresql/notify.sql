-- A late, coalesced wake-up for a flow whose enqueues were too many to announce one by one.
SELECT pg_notify(%(channel)s, %(flow)s)::text AS woken
