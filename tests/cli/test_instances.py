def test_instances_show_what_they_hold_and_did(cli, cli_ledger, cli_app, cli_sql):
    assert "No instances of late" in cli.ok("instances")
    cli_app.enqueue("gentle", [1, 2])
    with cli_app.processor(name="me") as processor:
        first, _second = processor.claim_records_batch("gentle", 2)
        processor.mark_record_completed(first)
        processor.instance.beat()
        [one] = cli.json("instances")
        assert (one["name"], one["state"], one["holds"], one["completed"]) == ("me", "active", 1, 1)
        assert one["heartbeat_age"] >= 0
        assert one["started_at"].endswith("+00:00")
        assert "me" in cli.ok("instances")
    [one] = cli.json("instances")
    assert one["state"] == "stopped"


def test_old_ones_are_shown_when_asked(cli, cli_sqlite, cli_app, cli_sql):
    with cli_app.processor():
        pass
    cli_sql("UPDATE {}service_instances SET ended_at = ended_at - 7200")
    assert cli.json("instances") == []
    assert len(cli.json("instances", "--all")) == 1


def test_a_worker_lists_its_flows(cli, cli_sqlite, cli_app):
    with cli_app.worker(["gentle"]):
        assert cli.json("instances")[0]["roles"] == "worker:gentle"
