"""`python -m rowlock.cli`: the same command line, where the script is not on the path."""

from rowlock.cli.main import run

if __name__ == "__main__":
    run()
