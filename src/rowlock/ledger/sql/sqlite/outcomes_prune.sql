-- Forgets what has left the flow's window.
DELETE FROM flow_outcomes WHERE flow_name = :flow AND piece < ledger_time() - 2 * :window
