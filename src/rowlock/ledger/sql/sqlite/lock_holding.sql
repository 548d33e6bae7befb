-- How one holding ended; no row while it lasts.
SELECT ended, detail FROM lock_holdings WHERE lock_name = :name AND slot = :slot AND token = :token
