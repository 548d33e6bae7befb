"""What `rowlock serve` serves for the benchmark of jobs."""

from bench.submits import declared
from rowlock import Rowlock

app = declared(Rowlock())
