"""The server: `python -m pure_exploration.server.app`, or `uvicorn server.app:app` in this package's folder.

PURE_EXPLORATION_SESSIONS: how many sessions there may be at the same time, 100 unless it is set.
"""

from __future__ import annotations

import argparse
import os

import uvicorn
from fastapi import Request
from fastapi.responses import JSONResponse
from openenv.core.env_server.http_server import create_app
from openenv.core.env_server.types import ConcurrencyConfig

try:
    from ..models import BanditAction, BanditObservation
    from .door import Door
    from .pure_exploration_environment import BanditEnvironment
    from .settings import Refused
except ImportError:
    from models import BanditAction, BanditObservation
    from server.door import Door
    from server.pure_exploration_environment import BanditEnvironment
    from server.settings import Refused

SESSIONS = int(os.environ.get("PURE_EXPLORATION_SESSIONS", "100"))
IDLE = 3600.0  # seconds, after which an idle session makes place for another; a connection that is there can go on

app = create_app(
    BanditEnvironment,
    BanditAction,
    BanditObservation,
    env_name="pure_exploration",
    concurrency_config=ConcurrencyConfig(max_concurrent_envs=SESSIONS, session_timeout=IDLE),
)
app.add_middleware(Door)


@app.exception_handler(Refused)
async def refused(request: Request, error: Refused) -> JSONResponse:
    """What a client asked for and cannot have is its own mistake."""
    return JSONResponse({"detail": str(error)}, error.status)


def main() -> None:
    """Serve on this machine; --host 0.0.0.0 for others."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000)
    given = parser.parse_args()
    uvicorn.run(app, host=given.host, port=given.port)


if __name__ == "__main__":
    main()
