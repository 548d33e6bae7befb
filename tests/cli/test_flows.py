def test_flows_are_added_paused_resumed_and_drained(cli, cli_ledger):
    assert "No flows yet" in cli.ok("flows", "list")
    cli.ok("flows", "add", "f", "--max-attempts", 9)
    cli.ok("flows", "pause", "f", "--reason", "maintenance")
    [flow] = cli.json("flows", "list")
    assert (flow["flow"], flow["state"], flow["reason"], flow["max_attempts"]) == (
        "f",
        "paused",
        "maintenance",
        9,
    )
    assert "maintenance" in cli.ok("flows", "list")
    cli.ok("flows", "resume", "f")
    [flow] = cli.json("flows", "list")
    assert (flow["state"], flow["reason"]) == ("active", None)
    cli.ok("flows", "drain", "f")
    assert cli.json("flows", "list")[0]["state"] == "draining"


def test_add_changes_limits_only_when_told(cli, cli_sqlite):
    cli.ok("flows", "add", "f", "--max-attempts", 9)
    assert "already" in cli.ok("flows", "add", "f")
    assert cli.json("flows", "list")[0]["max_attempts"] == 9
    cli.ok("flows", "add", "f", "--max-attempts", 2)
    assert cli.json("flows", "list")[0]["max_attempts"] == 2
    cli.refused("flows", "add", "")
    cli.refused("flows", "add", "f", "--max-attempts", 0, code=2)


def test_an_unknown_flow_is_an_error(cli, cli_sqlite):
    for verb in ("pause", "resume", "drain"):
        assert "There is no flow 'typo'" in cli.refused("flows", verb, "typo")
