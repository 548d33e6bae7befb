"""`/metrics`: for Prometheus."""

from fastapi import APIRouter, Request
from fastapi.responses import PlainTextResponse
from prometheus_client.exposition import choose_encoder

from rowlock.server.route import GuardedRoute, needs
from rowlock.server.tokens import Role

router = APIRouter(route_class=GuardedRoute, tags=["health"])


_OPENMETRICS = {"content": {"application/openmetrics-text": {"schema": {"type": "string"}}}}


@router.get("/metrics", response_class=PlainTextResponse, responses={200: _OPENMETRICS})
@needs(Role.READ)
def metrics(request: Request) -> PlainTextResponse:
    """Records, instances, locks and requests, as Prometheus reads them."""
    encode, media_type = choose_encoder(request.headers.get("accept", ""))
    return PlainTextResponse(encode(request.app.state.metrics.registry), media_type=media_type)
