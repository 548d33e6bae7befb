"""The routes: one file for each thing that is asked about. A new router is one more line in ROUTERS."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rowlock.server.routes import document, health, jobs, metrics, queue

if TYPE_CHECKING:
    from fastapi import APIRouter

ROUTERS: list[APIRouter] = [health.router, queue.router, jobs.router, metrics.router, document.router]
