"""`python -m rowlock.cli`: the same command line, where the script is not on the path."""

from rowlock.cli.main import main

if __name__ == "__main__":
    main()
