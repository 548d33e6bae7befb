"""The plugin as users have it: small projects of their own, each in a pytest of its own."""

from __future__ import annotations

import textwrap

import pytest

pytest_plugins = ["pytester"]

TASKS = """
    from rowlock import Backoff, RetryLater, Rowlock

    app = Rowlock("sqlite:///kept.db")

    @app.flow("score", max_attempts=3, backoff=Backoff(86400, 86400))
    def score(record):
        answers = record.payload["answers"]
        return sum(answers) / len(answers)

    @app.flow("for_ever")
    def for_ever(record):
        raise RetryLater(3600, "not yet")
"""


@pytest.fixture
def project(pytester):
    """A user's project; `run` writes a test file and runs it in a process of its own."""
    pytester.makepyfile(tasks=textwrap.dedent(TASKS))

    class Project:
        folder = pytester.path

        def run(self, source, *options, **files):
            files["test_it"] = source
            pytester.makepyfile(**{name: textwrap.dedent(text) for name, text in files.items()})
            return pytester.runpytest_subprocess("-p", "no:cacheprovider", "-W", "error", *options)

    return Project()


def test_whoever_does_not_use_it_pays_nothing(project):
    project.run(
        """
        import sys

        def test_nothing_is_imported():
            assert "rowlock.integrations.pytest.plugin" in sys.modules
            assert not {"sqlalchemy", "pydantic", "rowlock.app"} & set(sys.modules)
        """
    ).assert_outcomes(passed=1)


def test_the_programs_own_app_is_lent_and_given_back(project):
    done = project.run(
        """
        import time

        import tasks
        from rowlock import clock

        def test_one(rowlock_app, rowlock_ledger, rowlock_clock):
            app = rowlock_app(tasks.app)
            rowlock_clock.advance(3600)
            assert clock.wall() > time.time() + 3590
            assert app is tasks.app
            assert app.settings.ledger_url == rowlock_ledger.url
            app.ledger.run("flow_register", **app.flows["score"].limits)
            assert app.enqueue("score", {"answers": [1]}, key="a").accepted == 1

        def test_two_sees_nothing_of_one(rowlock_app):
            app = rowlock_app(tasks.app)
            app.ledger.run("flow_register", **app.flows["score"].limits)
            assert app.enqueue("score", {"answers": [1]}, key="a").accepted == 1

        def test_three_has_its_own_settings_again():
            assert tasks.app.settings.ledger_url == "sqlite:///kept.db"
            assert "ledger" not in vars(tasks.app)
            assert clock.wall() < time.time() + 1
        """
    )
    done.assert_outcomes(passed=3)
    assert not (project.folder / "kept.db").exists()


def test_it_never_runs_on_a_ledger_that_is_kept(project):
    done = project.run(
        """
        import tasks

        def test_run(run_until_idle):
            run_until_idle(tasks.app)

        def test_crash(crash_points):
            crash_points(tasks.app, "score", {"answers": [1]}, effects=lambda app: [])
        """
    )
    done.assert_outcomes(failed=2)
    assert done.stdout.str().count("Point it there first: rowlock_app(app)") >= 2
    assert not (project.folder / "kept.db").exists()


def test_runs_until_idle_and_tells_what_happened(project, postgres):
    project.run(
        """
        import pytest
        import tasks

        @pytest.fixture
        def app(rowlock_app):
            return rowlock_app(tasks.app)

        def test_results_in_order(app, run_until_idle):
            app.enqueue("score", [{"answers": [n]} for n in range(20)])
            ran = run_until_idle(app)
            assert ran.results == list(range(20))
            assert [len(one) for one in (ran.dead, ran.waiting, ran.errors)] == [0, 0, 0]
            assert run_until_idle(app).completed == []

        def test_a_failed_record_waits_and_nobody_sleeps(app, run_until_idle, rowlock_clock):
            app.enqueue("score", {"answers": []}, key="x")
            ran = run_until_idle(app)
            assert (len(ran.waiting), len(ran.errors)) == (1, 1)
            assert run_until_idle(app).errors == []  # its time has not come
            rowlock_clock.advance(86400)
            assert len(run_until_idle(app).errors) == 1
            ran = run_until_idle(app, advance_clock=True)
            [dead] = ran.dead
            assert (dead["key"], dead["attempt"], len(dead["attempts"])) == ("x", 3, 3)
            assert "score/x, attempt 3, failed: ZeroDivisionError: division by zero" in str(ran)
            assert "return sum(answers) / len(answers)" in str(ran)

        def test_a_lease_runs_out(app, run_until_idle, rowlock_clock):
            app.enqueue("score", {"answers": [4]})
            run_until_idle(app, ["for_ever"])
            with app.processor() as processor:
                [record] = processor.claim_records_batch("score", 10)
                ran = run_until_idle(app)
                assert (len(ran.completed), len(ran.waiting)) == (0, 1)  # somebody else has it
                rowlock_clock.advance(app.settings.lease_seconds + 1)
                assert run_until_idle(app).results == [4]

        def test_only_the_flows_that_were_named(app, run_until_idle):
            app.enqueue("score", {"answers": [1]})
            assert run_until_idle(app, ["for_ever"]).completed == []
            assert len(run_until_idle(app, ["score"]).completed) == 1

        def test_a_record_that_never_ends_is_named(app, run_until_idle):
            app.enqueue("for_ever", 1, key="x")
            with pytest.raises(TimeoutError, match="for_ever/x is"):
                run_until_idle(app, advance_clock=True, timeout=2)
        """,
        f"--rowlock-ledger=sqlite,{postgres.url}",
    ).assert_outcomes(passed=10)


def test_what_a_handler_raised_is_in_the_report_of_a_failed_test(project):
    done = project.run(
        """
        import tasks

        def test_it(rowlock_app, run_until_idle):
            app = rowlock_app(tasks.app)
            app.enqueue("score", {"answers": []}, key="x")
            assert run_until_idle(app).completed
        """
    )
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(
        ["*rowlock: attempts that failed*", "score/x, attempt 1, failed: ZeroDivisionError*", "*len(answers)"]
    )


def test_marker_option_and_ini_say_where(project):
    source = """
        import pytest

        @pytest.mark.rowlock_ledger("sqlite")
        def test_marked(rowlock_ledger):
            assert rowlock_ledger.kind == "sqlite"

        @pytest.mark.rowlock_ledger("sqlite", "postgresql")
        def test_both(rowlock_ledger, request):
            assert rowlock_ledger.kind == request.node.callspec.id
            assert rowlock_ledger.url.startswith(rowlock_ledger.kind)

        def test_plain(rowlock_ledger, request):
            assert rowlock_ledger.kind == request.config.getini("rowlock_ledger")[0]
            assert not hasattr(request.node, "callspec")
    """
    (project.folder / "pytest.ini").write_text("[pytest]\nrowlock_ledger = postgresql\n")
    project.run(source).assert_outcomes(passed=4)
    done = project.run("def test_it(rowlock_ledger): pass", "--rowlock-ledger=oracle://scott:tiger@x")
    done.assert_outcomes(errors=1)
    assert "'oracle' is not sqlite, postgresql" in done.stdout.str()
    assert "tiger" not in done.stdout.str().split("short test summary")[1]


def test_without_postgresql_it_skips_and_says_what_to_install(project):
    done = project.run(
        """
        import pytest
        from rowlock.databases import local_postgres

        @pytest.mark.rowlock_ledger("postgresql")
        def test_it(rowlock_ledger):
            raise AssertionError("it was skipped")
        """,
        "-rs",
        # The machine of this test may have PostgreSQL in two places.
        conftest="""
        from rowlock.databases import local_postgres
        local_postgres._from_wheel = local_postgres._from_system = lambda: None
        """,
    )
    done.assert_outcomes(skipped=1)
    assert "No PostgreSQL server programs were found. Install them" in done.stdout.str()
