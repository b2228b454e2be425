"""The examples in which language models play, with models that stand in for them."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from players import early, nonsense

import agents

KEY = "sk-test-0123456789"


@pytest.fixture
def server() -> Iterator[Any]:
    """A server with OpenAI's chat completions, which refuses every fourth request and any other key."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            place.asked.append(asked)
            right = self.path == "/v1/chat/completions" and self.headers["Authorization"] == f"Bearer {KEY}"
            code = 401 if not right else 503 if len(place.asked) % 4 == 3 else 200
            found = {"choices": [{"message": {"content": early(asked["messages"])}}], "usage": {"total_tokens": 11}}
            body = json.dumps(found).encode()
            self.send_response(code)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *given: Any) -> None:
            pass

    place: Any = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    place.asked = []
    threading.Thread(target=place.serve_forever, daemon=True).start()
    yield place
    place.shutdown()
    place.server_close()


def test_a_model_behind_an_endpoint(server: Any, tmp_path: Any, monkeypatch: Any, capsys: Any) -> None:
    import language_endpoint

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setattr(
        agents.LanguageAgent.__init__, "__kwdefaults__", agents.LanguageAgent.__init__.__kwdefaults__ | {"wait": 0.01}
    )
    url = f"http://127.0.0.1:{server.server_address[1]}/v1/"
    words = [
        "--url",
        url,
        "--model",
        "some/model",
        "--view",
        "history",
        "--tasks",
        "text-good-5",
        "--against",
        "uniform",
    ]
    result = language_endpoint.main(words)
    said = capsys.readouterr().out
    assert "1,530 calls if each pull is one" in said
    row = result.summary().set_index("agent").loc["some/model"]
    assert (row["calls"], row["tokens"]) == (6 * 30, 11 * 6 * 30)
    assert {one["model"] for one in server.asked} == {"some/model"}
    count = len(server.asked)
    assert count == pytest.approx(6 * 30 * 4 / 3, abs=8)
    language_endpoint.main(words)  # all is kept
    assert len(server.asked) == count
    assert KEY.encode() not in (tmp_path / "replies-some-model.db").read_bytes()


def test_an_endpoint_that_refuses_the_key_is_named(server: Any, tmp_path: Any, monkeypatch: Any) -> None:
    import language_endpoint

    monkeypatch.setenv("OPENAI_API_KEY", "another")
    complete = language_endpoint.endpoint(f"http://127.0.0.1:{server.server_address[1]}/v1", "m", temperature=0)
    one = agents.LanguageAgent(complete, retries=0)
    with pytest.raises(agents.language.EndpointError, match="401"):
        agents.evaluate(one, "Threshold", episodes=1)
    assert server.asked[0]["temperature"] == 0


def test_a_local_model() -> None:
    import torch
    from language_local import compared

    class Letters:
        """A tokenizer of characters."""

        eos_token_id = 0

        def apply_chat_template(self, messages: Any, **how: Any) -> Any:
            return {"input_ids": torch.tensor([[ord(x) for one in messages for x in one["content"]]])}

        def decode(self, tokens: Any, skip_special_tokens: bool) -> str:
            return "".join(map(chr, tokens.tolist()))

    class Model:
        def generate(self, input_ids: Any, max_new_tokens: int, **how: Any) -> Any:
            said = nonsense([])
            assert len(said) <= max_new_tokens
            return torch.cat([input_ids, torch.tensor([[ord(x) for x in said]])], dim=1)

    frame = compared(Model(), Letters(), "letters", episodes=3).set_index("agent")
    assert frame.loc["letters", ["score", "calls", "unreadable"]].tolist() == [0.0, 3.0, 3.0]
    assert frame.loc["lsa", "score"] > 0.5


def test_a_task_of_inspect(tmp_path: Any) -> None:
    """In a process of its own, as Inspect changes what it imports."""
    pytest.importorskip("inspect_ai", reason="inspect_ai is not installed")
    path = Path(__file__).parents[2] / "examples" / "language_inspect.py"
    done = subprocess.run([sys.executable, str(path)], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    *samples, last = done.stdout.splitlines()
    assert last.startswith("success")
    found = [ast.literal_eval(line.partition(" ")[2]) for line in samples]
    assert len(found) == 5
    assert all(one["total_pulls"] == 6 and 0 <= one["score"] <= one["lsa"] for one in found)
