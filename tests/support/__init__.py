"""What several tests need: a movable ledger clock, ledgers of every dialect, little helpers."""
