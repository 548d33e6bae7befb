"""Files appear whole or not at all, and what has appeared never changes."""

from __future__ import annotations

import os
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from urllib.request import urlopen

import pytest

from rowlock import (
    ConfigurationError,
    NotFound,
    Refused,
    Settings,
    StorageFull,
    StorageRefused,
    StorageUnavailable,
)
from rowlock.jobs.storage import ATTEMPTS, ArtifactStore
from tests.jobs.careless_s3 import careless_s3

LARGE = [os.urandom(3 * 1024 * 1024) for _ in range(6)]
KEY = "exports/2026/01/10/J1/ABC_20240202_CLS.csv"


def stage(store, *chunks, token=1):
    return store.stage("ABC_20240202_CLS.csv", iter(chunks), token=token, content_type="text/csv")


def publish(store, *chunks, token=1, key=KEY):
    staged = stage(store, *chunks, token=token)
    try:
        return store.publish(staged, key, token=token)
    finally:
        store.discard(staged)


def content(store, path):
    return b"".join(store.read(path))


def keys(store, prefix=""):
    """Every file, but for the claims, which no file is without for long."""
    return sorted(stored.key for stored in store.list(prefix) if not stored.key.startswith(".claims/"))


@pytest.mark.parametrize("chunks", [[b"a,b\n", b"1,2\n"], LARGE, []], ids=["small", "large", "empty"])
def test_a_file_is_published_at_its_plain_path(store, chunks):
    staged = stage(store, *chunks)
    assert not store.exists(KEY)
    assert store.publish(staged, KEY, token=1) == KEY
    store.discard(staged)
    assert content(store, KEY) == b"".join(chunks)
    assert store.head(store.url_of(KEY)).size == sum(map(len, chunks)) == staged.size
    assert store.url_of(KEY) == f"{store.url}/{KEY}"
    assert keys(store) == [KEY]


@pytest.mark.parametrize("chunks", [[b"a,b\n"], LARGE], ids=["small", "large"])
def test_a_producer_that_fails_leaves_nothing(store, chunks):
    def broken():
        yield from chunks
        raise ConnectionResetError("the source went away")

    with pytest.raises(ConnectionResetError):
        store.stage("x.csv", broken(), token=1, content_type="text/csv")
    assert keys(store) == []


@pytest.mark.parametrize("size", [1, 9 * 1024 * 1024], ids=["small", "large"])
def test_attempts_that_race_for_one_path_leave_one_winner_and_no_mixture(store, size):
    count = 4
    barrier = threading.Barrier(count)

    def attempt(token):
        staged = stage(store, bytes([token]) * size, token=token)
        barrier.wait()
        try:
            return token, store.publish(staged, KEY, token=token)
        finally:
            store.discard(staged)

    with ThreadPoolExecutor(count) as pool:
        published = dict(pool.map(attempt, range(1, count + 1)))
    assert list(published.values()).count(KEY) == 1
    assert len(set(published.values())) == count
    for token, path in published.items():
        assert content(store, path) == bytes([token]) * size
    assert sorted(published.values()) == keys(store)


def test_an_attempt_that_died_between_its_claim_and_its_copy_leaves_the_path_to_nobody(s3):
    s3.make_bucket("tests")
    store = ArtifactStore.open("s3://tests/claims", **s3.options)
    zombie = stage(store, *LARGE, b"zombie")
    assert store._claimed(KEY, zombie)
    counted = publish(store, *LARGE, b"counted", token=2)
    assert counted != KEY
    assert store.publish(zombie, KEY, token=1) == KEY  # it wakes up: its own claim, its own path
    assert content(store, counted) == b"".join([*LARGE, b"counted"])


@pytest.mark.parametrize("size", [1, 9 * 1024 * 1024], ids=["small", "large"])
def test_a_zombie_that_wakes_up_late_cannot_change_what_counted(store, size):
    late = stage(store, b"z" * size, token=1)
    assert publish(store, b"c" * size, token=2) == KEY
    beside = store.publish(late, KEY, token=1)
    store.discard(late)
    assert content(store, KEY) == b"c" * size
    assert beside != KEY
    assert beside.startswith("exports/2026/01/10/J1/ABC_20240202_CLS.1-")
    assert beside.endswith(".csv")


@pytest.mark.parametrize("chunks", [[b"a,b\n"], LARGE], ids=["small", "large"])
def test_the_same_content_is_adopted(store, chunks):
    """An earlier attempt crashed after it had published, or the reply of its request was lost."""
    assert publish(store, *chunks, token=1) == KEY
    assert publish(store, *chunks, token=2) == KEY
    assert keys(store) == [KEY]


def test_other_content_of_the_same_size_is_not_adopted(store):
    publish(store, b"one", token=1)
    other = publish(store, b"two", token=2)
    assert (content(store, KEY), content(store, other)) == (b"one", b"two")


def test_a_store_without_create_only_gives_later_attempts_paths_of_their_own(tmp_path):
    store = ArtifactStore.open(tmp_path.as_uri())
    store.__dict__["_links"] = False
    zombie = stage(store, b"zombie", token=1)
    counted = publish(store, b"counted", token=2)
    assert counted != KEY
    assert store.publish(zombie, KEY, token=1) == KEY
    assert content(store, counted) == b"counted"
    assert publish(store, b"other record", token=1) != KEY
    assert content(store, KEY) == b"zombie"


def test_a_server_that_ignores_conditions_is_found_out(s3):
    with careless_s3() as server:
        careless = ArtifactStore.open(
            "s3://bucket/x",
            endpoint=f"http://127.0.0.1:{server.server_port}",
            region="us-east-1",
            access_key_id="a",
            secret_access_key="b",  # noqa: S106
        )
        assert careless._conditions == (False, False)
        counted = publish(careless, b"counted", token=2)
        assert counted != KEY
        assert publish(careless, b"zombie", token=1) == KEY
        assert server.files[f"/bucket/x/{counted}"] == b"counted"
    s3.make_bucket("tests")
    assert ArtifactStore.open("s3://tests/careful", **s3.options)._conditions == (True, True)


def test_a_file_too_large_to_copy_stays_where_its_attempt_has_put_it(s3):
    s3.make_bucket("tests")
    store = ArtifactStore.open("s3://tests/large-files", **s3.options)
    store.copy_limit = 1024
    path = publish(store, *LARGE, token=3)
    assert path.startswith(f"{ATTEMPTS}/3-")
    assert content(store, path) == b"".join(LARGE)


def test_sweeping_takes_what_is_old_and_what_nothing_refers_to(store):
    publish(store, b"counted")
    publish(store, b"lost", token=2)
    stage(store, *LARGE, token=7)
    earlier, later = (datetime.now(UTC) + timedelta(hours=hours) for hours in (-1, 1))
    assert store.sweep_attempts(earlier) == 0
    assert store.sweep_attempts(later) == 1
    assert keys(store, ATTEMPTS) == []
    counted = store.url_of(KEY)
    assert not store.leftovers("exports", earlier, {counted})
    [lost] = store.leftovers("exports", later, {counted})
    assert content(store, lost.key) == b"lost"


def test_sweeping_leaves_what_is_too_large_to_copy_and_forgets_old_claims(s3):
    s3.make_bucket("tests")
    store = ArtifactStore.open("s3://tests/large-swept", **s3.options)
    copied = publish(store, *LARGE)
    store.copy_limit = 1024
    kept = publish(store, *LARGE, token=3)
    store.sweep_attempts(datetime.now(UTC) + timedelta(hours=1))
    assert sorted(keys(store)) == sorted([copied, kept])


def test_a_store_belongs_to_the_ledger_that_was_there_first(store):
    assert store.belongs_to("one")
    assert store.belongs_to("one")
    assert not store.belongs_to("another")


def test_files_that_are_not_there(store):
    assert not store.exists(KEY)
    with pytest.raises(NotFound):
        store.head(KEY)
    with pytest.raises(NotFound):
        list(store.read(KEY))
    store.delete(KEY)
    assert list(store.list("nothing/here")) == []
    assert not store.exists("s3://another-bucket/exports/x.csv")


@pytest.mark.parametrize("path", ["../secret", "a/../../b", "/etc/passwd", "a//b", "", "a/./b"])
def test_a_path_that_leads_out_of_the_store_is_refused(store, path):
    with pytest.raises(NotFound):
        store.head(path)
    with pytest.raises(NotFound):
        store.delete(path)


def test_a_small_file_may_be_put_in_place_of_another(store):
    for text in (b"{}", b'{"files": 1}'):
        assert store.put("jobs/J1/manifest.json", text, content_type="application/json") == store.url_of(
            "jobs/J1/manifest.json"
        )
    assert content(store, "jobs/J1/manifest.json") == b'{"files": 1}'
    assert keys(store) == ["jobs/J1/manifest.json"]


def test_a_signed_address_lets_anybody_read(s3):
    s3.make_bucket("tests")
    store = ArtifactStore.open("s3://tests/signed/x", **s3.options)
    publish(store, b"hello")
    with urlopen(store.sign(store.url_of(KEY), 60), timeout=10) as answer:  # noqa: S310
        assert answer.read() == b"hello"
        assert answer.headers["Content-Type"] == "text/csv"


def test_a_folder_signs_nothing(tmp_path):
    with pytest.raises(Refused, match="signed"):
        ArtifactStore.open(tmp_path.as_uri()).sign("x", 60)


# -- what goes wrong -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("chunks", [[b"x"], LARGE], ids=["small", "large"])
def test_a_bucket_that_is_not_there_is_refused(s3, chunks):
    store = ArtifactStore.open("s3://no-such-bucket/x", **s3.options)
    with pytest.raises(StorageRefused, match="NoSuchBucket"):
        publish(store, *chunks)
    with pytest.raises(StorageRefused, match="NoSuchBucket"):
        list(store.list())


@pytest.mark.parametrize("chunks", [[b"x"], LARGE], ids=["small", "large"])
def test_wrong_credentials_are_refused_and_not_shown(s3, chunks):
    s3.make_bucket("tests")
    secret = "not-the-secret-at-all"  # noqa: S105
    store = ArtifactStore.open("s3://tests/closed", **{**s3.options, "secret_access_key": secret})
    with pytest.raises(StorageRefused, match="credentials") as caught:
        publish(store, *chunks)
    assert secret not in f"{caught.value} {store!r}"


def test_a_server_that_is_away_may_be_tried_again(s3):
    store = ArtifactStore.open("s3://bucket", **{**s3.options, "endpoint": "http://127.0.0.1:9"})
    with pytest.raises(StorageUnavailable):
        publish(store, b"x")


@pytest.fixture
def small_disk(tmp_path):
    place = tmp_path / "small"
    place.mkdir()
    if (
        os.geteuid() != 0
        or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", place], check=False).returncode
    ):
        pytest.skip("a small disk can be mounted by root only")
    yield place
    subprocess.run(["umount", place], check=True)


def test_a_full_disk_is_said_and_leaves_nothing(small_disk):
    store = ArtifactStore.open(small_disk.as_uri())
    publish(store, b"before")
    with pytest.raises(StorageFull, match="Free space"):
        publish(store, *LARGE, key="other.csv")
    assert keys(store) == [KEY]
    assert publish(store, b"small", key="other.csv") == "other.csv"


def test_a_folder_that_cannot_be_made_is_refused(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(StorageRefused):
        publish(ArtifactStore.open((tmp_path / "file" / "folder").as_uri()), b"x")


@pytest.mark.parametrize(
    ("url", "options"),
    [
        ("ftp://x/y", {}),
        ("nothing", {}),
        ("file://host/x", {}),
        ("file:///x", {"region": "y"}),
        ("s3://x", {"no_such_option": "s3cret"}),
    ],
)
def test_a_url_that_cannot_be_used_is_refused_without_its_secrets(url, options):
    with pytest.raises(ConfigurationError) as caught:
        ArtifactStore.open(url, **options)
    assert "s3cret" not in str(caught.value)


def test_the_settings_name_the_store(s3, tmp_path, monkeypatch):
    s3.make_bucket("tests")
    settings = Settings(
        storage_url="s3://tests/by-settings/x",
        **{f"storage_{name}": value for name, value in s3.options.items()},
    )
    assert s3.secret_access_key not in repr(settings)
    publish(ArtifactStore.from_settings(settings), b"x")
    monkeypatch.chdir(tmp_path)
    assert ArtifactStore.from_settings(Settings()).url == (tmp_path / "exports").as_uri()
