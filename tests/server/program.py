"""What `rowlock serve` serves while it is explored."""

from rowlock import Rowlock
from rowlock.server import event_stream
from tests.server.explored import declare

app = declare(Rowlock())
# Whoever watches the job that waits is not to wait with it.
event_stream.POLL_SECONDS, event_stream.LONGEST_SECONDS = 0.01, 0.05
