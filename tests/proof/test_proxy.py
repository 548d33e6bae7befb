"""The proxy between a real client and a real server: what it drops has happened, and nobody is told."""

from __future__ import annotations

import threading
from urllib.parse import urlsplit
from uuid import uuid4

import psycopg
import pytest

from rowlock.proof.proxy import Proxy
from rowlock.proof.wire import ServerStream
from tests.support.waiting import eventually


@pytest.fixture
def proxy(postgres):
    with Proxy("127.0.0.1", postgres.port) as running:
        yield running


@pytest.fixture
def through(postgres, proxy):
    """The server's URL, through the proxy."""
    url = urlsplit(postgres.url)
    return url._replace(
        netloc=f"rowlock@127.0.0.1:{proxy.port}", query="sslmode=disable&gssencmode=disable"
    ).geturl()


@pytest.fixture
def table(postgres):
    name = f"proxied_{uuid4().hex[:8]}"
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute(f"CREATE TABLE {name} (n int)")
        yield name
        connection.execute(f"DROP TABLE {name}")


def count(postgres, table):
    with psycopg.connect(postgres.url) as connection:
        return connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]


def test_it_passes_everything_on(through, proxy):
    with psycopg.connect(through) as connection:
        rows = connection.execute("SELECT repeat('x', 1000) FROM generate_series(1, 2000)").fetchall()
        assert len(rows) == 2000
        assert proxy.links == 1
    eventually(lambda: proxy.links == 0, "the end of the link")


def test_a_commit_whose_reply_is_dropped_has_happened(postgres, proxy, through, table):
    with psycopg.connect(through) as connection:
        connection.execute(f"INSERT INTO {table} VALUES (1)")
        proxy.lose_commit(explicit=True)
        with pytest.raises(psycopg.OperationalError):
            connection.commit()
    assert count(postgres, table) == 1
    assert proxy.lost_commits == 1


def test_a_statement_that_committed_by_itself_and_whose_reply_is_dropped_has_happened(
    postgres, proxy, through, table
):
    with psycopg.connect(through, autocommit=True) as connection:
        proxy.lose_commit(explicit=False)
        with pytest.raises(psycopg.OperationalError):
            connection.execute(f"INSERT INTO {table} VALUES (1)")
    assert count(postgres, table) == 1
    assert (proxy.lost_commits, proxy.lost_replies) == (0, 1)


def test_neither_a_roll_back_nor_an_error_nor_a_statement_inside_a_transaction_is_a_commit(
    proxy, through, table
):
    with psycopg.connect(through) as connection:
        proxy.lose_commit(explicit=True)
        proxy.lose_commit(explicit=False)
        connection.execute(f"INSERT INTO {table} VALUES (1)")
        connection.rollback()
        with pytest.raises(psycopg.errors.UndefinedTable):
            connection.execute("SELECT 1 FROM nowhere")
        connection.rollback()
        assert (proxy.lost_commits, proxy.lost_replies) == (0, 0)
    assert proxy.forgive() in (1, 2)  # the last with block commits


def test_a_silent_network_answers_when_it_speaks_again(proxy, through):
    answers = []
    with psycopg.connect(through, autocommit=True) as connection:
        proxy.set_mood("silent")
        asking = threading.Thread(target=lambda: answers.append(connection.execute("SELECT 7").fetchone()[0]))
        asking.start()
        asking.join(0.2)
        assert not answers
        proxy.set_mood("through")
        asking.join(20)
        assert answers == [7]


def test_nothing_overtakes_what_is_slow(proxy, through):
    with psycopg.connect(through, autocommit=True) as connection:
        for number in range(6):
            proxy.set_mood("slow" if number % 2 else "through")
            assert connection.execute("SELECT %s::int", (number,)).fetchone()[0] == number


def test_a_reset_ends_every_connection(proxy, through):
    with psycopg.connect(through, autocommit=True) as connection:
        proxy.reset()
        with pytest.raises(psycopg.OperationalError):
            connection.execute("SELECT 1")


def test_a_server_that_is_away_is_a_refused_connection():
    with Proxy("127.0.0.1", 1) as nowhere, pytest.raises(psycopg.OperationalError):
        psycopg.connect(
            f"postgresql://rowlock@127.0.0.1:{nowhere.port}/postgres?sslmode=disable&gssencmode=disable"
        )


# -- the stream ------------------------------------------------------------------------------------------------


def message(kind: bytes, body: bytes = b"") -> bytes:
    return kind + (len(body) + 4).to_bytes(4, "big") + body


READY, IN_TRANSACTION = message(b"Z", b"I"), message(b"Z", b"T")
STREAM = (
    READY
    + message(b"C", b"BEGIN\0") + IN_TRANSACTION
    + message(b"D", b"C\0\0\0\4Z\0\0\0\5I") + message(b"C", b"INSERT 0 1\0") + IN_TRANSACTION
    + message(b"C", b"COMMIT\0") + READY
)  # fmt: skip


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7, 11, 1000])
def test_the_stream_is_understood_in_whatever_pieces_it_comes(size):
    stream, found = ServerStream(), []
    for at in range(0, len(STREAM), size):
        reply = stream.feed(STREAM[at : at + size])
        if reply:
            found.append((reply.explicit, at + reply.offset))
    assert len(found) == 1
    [(explicit, place)] = found
    assert explicit
    begins = STREAM.index(message(b"C", b"COMMIT\0"))
    assert begins <= place <= begins + len(message(b"C", b"COMMIT\0"))
    if size == 1000:
        assert place == begins
