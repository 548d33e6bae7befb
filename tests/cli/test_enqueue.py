import json

import pytest


@pytest.fixture(autouse=True)
def flow(cli, cli_sqlite):
    cli.ok("flows", "add", "f")


def payloads(cli):
    found = reversed(cli.json("records", "list", "--flow", "f"))
    return [cli.json("records", "show", one["id"])["payload"] for one in found]


def test_a_file_of_records(cli, cli_home):
    (cli_home / "r.jsonl").write_text('\ufeff{"a": 1}\n\n[2, "ä"]\n"three"\n')
    assert "3 accepted, 0 already known" in cli.ok("enqueue", "f", "--file", "r.jsonl")
    assert payloads(cli) == [{"a": 1}, [2, "ä"], "three"]


def test_stdin_keys_and_known_ones(cli):
    lines = "".join(json.dumps({"doc": {"ids": [n]}}) + "\n" for n in (1, 2, 1))
    result = cli.json("enqueue", "f", "--file", "-", "--key", "doc.ids.0", stdin=lines)
    assert (result["accepted"], result["known"], len(result["ids"])) == (2, 1, 2)
    assert "0 accepted, 3 already known" in cli.ok(
        "enqueue", "f", "--file", "-", "--key", "doc.ids.0", stdin=lines
    )
    assert {one["key"] for one in cli.json("records", "list")} == {"1", "2"}


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("{oops", "line 3 is not JSON"),
        ('{"id": NaN}', "line 3 is not JSON: NaN"),
        ('{"other": 1}', "line 3 has no 'id'"),
        ('{"id": ""}', "line 3: a key has 1 to 255"),
        ('{"id": null}', "line 3: a key is a string or a whole number"),
        ('{"id": 3, "x": "' + "x" * 1100 + '"}', "line 3 is 11"),
    ],
)
def test_a_bad_line_is_named_and_nothing_is_enqueued(cli, monkeypatch, line, words):
    monkeypatch.setenv("ROWLOCK_MAX_PAYLOAD_BYTES", "1000")
    text = f'{{"id": 1}}\n\n{line}\n{{"id": 4}}\n'
    assert words in cli.refused("enqueue", "f", "--file", "-", "--key", "id", stdin=text)
    assert cli.json("records", "list") == []


def test_files_that_cannot_be_read(cli, cli_home):
    assert "No such file" in cli.refused("enqueue", "f", "--file", "none.jsonl")
    (cli_home / "latin.jsonl").write_bytes(b'"\xe4"\n')
    assert "is not UTF-8" in cli.refused("enqueue", "f", "--file", "latin.jsonl")


def test_priority_and_time(cli):
    cli.ok("enqueue", "f", "--payload", "1", "--priority", 7, "--run-at", "2199-01-31T08:00Z")
    [one] = cli.json("records", "list", "--status", "pending")
    assert one["priority"] == 7
    assert one["run_at"] == "2199-01-31T08:00:00.000+00:00"
    assert "0 (normal) to 100" in cli.refused("enqueue", "f", "--payload", "1", "--priority", 101)
    assert "time zone" in cli.refused(
        "enqueue", "f", "--payload", "1", "--run-at", "2199-01-31T08:00", code=2
    )
    cli.refused("enqueue", "f", "--payload", "1", "--run-at", "soon", code=2)


def test_what_cannot_be_enqueued(cli):
    assert "rowlock flows add nobody" in cli.refused("enqueue", "nobody", "--payload", "1")
    cli.refused("enqueue", "f", code=2)
    cli.refused("enqueue", "f", "--payload", "1", "--file", "-", code=2)
    cli.ok("flows", "drain", "f")
    assert "takes no new records" in cli.refused("enqueue", "f", "--payload", "1")
