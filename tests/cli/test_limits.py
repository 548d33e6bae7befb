def test_limits_show_what_is_used_and_by_whom(cli, cli_ledger, cli_app):
    assert "No limits yet" in cli.ok("limits")
    with cli_app.limit("sec.gov", rate="2/h", burst=2, concurrency=4), cli_app.limit("mail", rate="1000/s"):
        found = {one["limit"]: one for one in cli.json("limits")}
        one = found["sec.gov"]
        assert (one["rate"], one["burst"], one["in_use"], one["concurrency"]) == ("2/h", 2, 1, 4)
        [holder] = one["holders"]
        assert holder["instance"] == cli_app.locks.instance.id
        assert (one["waiting"], one["uses"]) == (0, 1)
        assert found["mail"]["concurrency"] is None
        text = cli.ok("limits")
        assert "2/h (bursts of 2)" in text
        assert "1 of 4" in text
        assert cli_app.locks.instance.name in text
    assert cli.json("limits")[1]["holders"] == []


def test_a_breaker_shows_in_flows_and_status_and_a_resume_closes_it(cli, cli_ledger, cli_app):
    cli.ok("flows", "add", "fetch")
    assert cli_app.ledger.breakers.trip("fetch", 3600, "breaker: 12 of 20 attempts failed within 60 s")
    for command in (("flows", "list"), ("status",)):
        text = cli.ok(*command)
        assert "breaker: 12 of 20 attempts failed within 60 s; probes in 60 min" in text
    [flow] = cli.json("flows", "list")
    assert (flow["state"], flow["breaker"]) == ("paused", "open")
    cli.ok("flows", "resume", "fetch")
    [flow] = cli.json("flows", "list")
    assert (flow["state"], flow["breaker"], flow["reason"]) == ("active", None, None)
    assert cli_app.ledger.breakers.trip("fetch", 0, "breaker: again")
    assert cli_app.ledger.breakers.probe("fetch", 1)
    assert "breaker: again; probing now" in cli.ok("flows", "list")
