"""`rowlock version`."""

import typer


def show(wanted: bool) -> None:
    """The option --version."""
    if wanted:
        version()
        raise typer.Exit


def version() -> None:
    """Show the version."""
    import platform
    from importlib.metadata import version as installed

    typer.echo(f"rowlock {installed('rowlock')} (Python {platform.python_version()})")
