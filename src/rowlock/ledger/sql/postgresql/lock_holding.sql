-- How one holding ended; no row while it lasts.
SELECT ended, detail FROM rowlock.lock_holdings
WHERE lock_name = %(name)s AND slot = %(slot)s AND token = %(token)s
