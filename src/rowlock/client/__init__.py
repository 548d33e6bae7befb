"""A typed client of a Rowlock server: `Client` for plain programs, `AsyncClient` for async ones."""

from importlib.util import find_spec

from rowlock.errors import ConfigurationError

if find_spec("httpx2") is None:
    raise ConfigurationError("The client needs httpx2. Install it: pip install 'rowlock[client]'")

from rowlock.client.async_client import AsyncClient
from rowlock.client.client import Client
from rowlock.client.event import Event
from rowlock.server.job_views import InputView, JobAccepted, JobPlan, JobView, Redriven
from rowlock.server.views import Ready

__all__ = [
    "AsyncClient",
    "Client",
    "Event",
    "InputView",
    "JobAccepted",
    "JobPlan",
    "JobView",
    "Ready",
    "Redriven",
]
