def test_prune_forgets_what_is_old_and_keeps_dead_letters(cli, cli_ledger, cli_app, cli_die, monkeypatch):
    monkeypatch.setenv("ROWLOCK_PRUNE_BATCH", "2")
    cli_die(bad=ValueError("no"))
    cli_app.enqueue("gentle", list(range(5)), key=lambda p: p)
    with cli_app.processor() as processor:
        for record in processor.claim_records_batch("gentle", 4):
            processor.mark_record_completed(record)
    assert cli.ok("prune", "--dry-run") == "0\n"
    assert cli.ok("prune", "--older-than", 0, "--dry-run") == "4\n"
    assert len(cli.json("records", "list")) == 6
    assert "4 forgotten" in cli.ok("prune", "--older-than", 0)
    assert sorted(one["status"] for one in cli.json("records", "list")) == ["dead", "pending"]
    assert "1 forgotten" in cli.ok("prune", "--older-than", 0, "--dead")
    assert cli_app.enqueue("strict", 1, key="bad").accepted == 1, "its key is free again"
