import tomllib

from rowlock.settings import Settings, load_settings


def test_init_makes_a_project_that_works(cli, cli_home):
    out = cli.ok("init")
    assert "rowlock worker tasks" in out
    assert cli.json("enqueue", "hello", "--payload", '{"name": "Ann"}')["accepted"] == 1
    assert [flow["flow"] for flow in cli.json("flows", "list")] == ["hello"]
    text = (cli_home / "rowlock.toml").read_text()
    assert tomllib.loads(text) == {"ledger_url": "sqlite:///rowlock.db"}
    assert all(name in text for name in Settings.model_fields)


def test_the_commented_defaults_are_the_defaults(cli, cli_home):
    cli.ok("init")
    file = cli_home / "rowlock.toml"
    lines = [line.removeprefix("# ") for line in file.read_text().splitlines()]
    file.write_text("\n".join(line for line in lines if " = " in line))
    assert load_settings() == Settings(ledger_url="sqlite:///rowlock.db")


def test_init_overwrites_nothing(cli, cli_home):
    (cli_home / "rowlock.toml").write_text("pool_size = 7\n")
    (cli_home / "tasks.py").write_text("mine = True\n")
    assert "--force" in cli.refused("init")
    assert (cli_home / "rowlock.toml").read_text() == "pool_size = 7\n"
    assert not (cli_home / "rowlock.db").exists()
    cli.ok("init", "--force")
    assert "ledger_url" in (cli_home / "rowlock.toml").read_text()
    assert (cli_home / "tasks.py").read_text() == "mine = True\n"


def test_init_keeps_passwords_out_of_the_file(cli, cli_home, cli_postgres):
    url = cli_postgres.url.replace("rowlock@", "rowlock:s3cret@")
    cli.ok("init", "--ledger", url)
    text = (cli_home / "rowlock.toml").read_text()
    assert "s3cret" not in text
    assert tomllib.loads(text) == {}


def test_init_leaves_nothing_half_made(cli, cli_home):
    cli.refused("init", "--ledger", "postgresql://127.0.0.1:1/none")
    assert not list(cli_home.iterdir())
