"""`ResumeFile`: what a training needs to go on after a kill exactly as it would have gone on.

The file is NumPy's `.npz`: arrays, and one text of JSON that tells where they belong. It holds no pickles, so reading
one runs no code of its maker. What a call of `train` decides is not in it: the same call makes the environments, the
model and the callback anew, and they are then given the numbers that have changed since the beginning.
"""

from __future__ import annotations

import json
import zipfile
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ..core.files import write_alone
from ..models.formats import FORMAT
from .generators import generator_states, set_generators
from .joined_vec_env import JoinedVecEnv

__all__ = ["ResumeFile", "environment_state", "model_state", "restore_environment", "restore_model"]

HEADER = "header"  # the array that holds the JSON text
KIND = "kind"  # the key that tells what an object of JSON stands for, where it is no list and no number

# What changes in a model of SB3 or sb3-contrib beside its weights, its optimizer, its environments and its buffers.
MOVING = (
    "num_timesteps", "_total_timesteps", "_num_timesteps_at_start", "_n_updates", "_n_calls", "_episode_num",
    "_current_progress_remaining", "exploration_rate", "_last_obs", "_last_original_obs", "_last_episode_starts",
    "_last_lstm_states", "ep_info_buffer", "ep_success_buffer",
)  # fmt: skip
# And in the environments: of `NativeVecEnv`, of its expected scores, and of the vector environment below it.
MOVING_SLOTS = ("_root", "_following", "_number", "_length", "_return", "_potential")
MOVING_SCORES = ("_seen", "_wrong")
MOVING_EPISODES = ("_roots", "_key", "_episode", "_waiting", "_state")


def pack(value: Any, arrays: dict[str, NDArray[Any]]) -> Any:
    """The JSON form of a value; arrays and tensors in it are added to `arrays`, under names that the form tells.

    Args:
        value: None, a number, text, an array, a tensor, or a list, tuple, deque or dict of such.
        arrays: by name.

    Raises:
        TypeError: for anything else.
    """
    if value is None or type(value) in (bool, int, float, str):
        return value
    if type(value) is list:
        return [pack(one, arrays) for one in value]
    if isinstance(value, tuple):
        return {KIND: "tuple", "of": [pack(one, arrays) for one in value]}
    if isinstance(value, deque):
        return {KIND: "deque", "of": [pack(one, arrays) for one in value], "most": value.maxlen}
    if isinstance(value, Mapping):
        return {KIND: "dict", "of": [[pack(key, arrays), pack(one, arrays)] for key, one in value.items()]}
    if isinstance(value, torch.Tensor):
        kind, array = "tensor", value.detach().cpu().numpy()
    elif isinstance(value, (np.ndarray, np.generic)):
        kind, array = "array" if isinstance(value, np.ndarray) else "scalar", np.asarray(value)
    else:
        raise TypeError(f"a resume file holds numbers, text and arrays, got {value!r:.200}")
    name = f"a{len(arrays)}"
    arrays[name] = array
    return {KIND: kind, "name": name}


def unpack(form: Any, arrays: Mapping[str, NDArray[Any]]) -> Any:
    """The value that `pack` has brought into this form."""
    if isinstance(form, list):
        return [unpack(one, arrays) for one in form]
    if not isinstance(form, dict):
        return form
    kind = form[KIND]
    if kind in ("tensor", "array", "scalar"):
        array = arrays[form["name"]]
        return torch.from_numpy(array.copy()) if kind == "tensor" else array[()] if kind == "scalar" else array
    if kind == "dict":
        return {unpack(key, arrays): unpack(one, arrays) for key, one in form["of"]}
    values = [unpack(one, arrays) for one in form["of"]]
    return tuple(values) if kind == "tuple" else deque(values, form["most"])


# --- environments -----------------------------------------------------------------------------------------------------


def environment_state(envs: Any) -> list[dict[str, Any]]:
    """What has changed in a `NativeVecEnv`, or in each part of a `JoinedVecEnv`, since it was made."""
    return [
        {
            "slots": {name: getattr(part, name) for name in MOVING_SLOTS},
            "scores": {name: getattr(part._expected_scores, name) for name in MOVING_SCORES},
            "episodes": {name: value for name, value in part.envs.__getstate__().items() if name in MOVING_EPISODES},
        }
        for part in _parts(envs)
    ]


def restore_environment(envs: Any, state: list[dict[str, Any]]) -> None:
    """Bring an environment that was made anew to where another one has been."""
    for part, told in zip(_parts(envs), state, strict=True):
        for owner, key in ((part, "slots"), (part._expected_scores, "scores")):
            for name, value in told[key].items():
                setattr(owner, name, value)
        part.envs.__setstate__(part.envs.__getstate__() | told["episodes"])


def _parts(envs: Any) -> list[Any]:
    return envs.parts if isinstance(envs, JoinedVecEnv) else [envs]


# --- models -----------------------------------------------------------------------------------------------------------


def model_state(model: Any) -> dict[str, Any]:
    """What has changed in a model of SB3 since it was made, its environments included."""
    random_actions = model.action_space.np_random.bit_generator.state
    return {
        "moving": {name: getattr(model, name) for name in MOVING if hasattr(model, name)},
        "policy": dict(model.policy.state_dict()),
        "optimizer": model.policy.optimizer.state_dict(),
        "actions": random_actions,
        "replay": _replay_state(getattr(model, "replay_buffer", None)),
        "envs": environment_state(model.env),
    }


def restore_model(model: Any, state: Mapping[str, Any]) -> None:
    """Bring a model that was made anew, and its environments, to where another one has been."""
    for name, value in state["moving"].items():
        kind = type(getattr(model, name, None))
        if issubclass(kind, tuple) and hasattr(kind, "_fields"):  # SB3 asks for its own NamedTuple
            value = kind(*value)
        setattr(model, name, value)
    model.policy.load_state_dict(state["policy"])
    model.policy.optimizer.load_state_dict(state["optimizer"])
    model.action_space.np_random.bit_generator.state = state["actions"]
    buffer = getattr(model, "replay_buffer", None)
    if buffer is not None:
        buffer.pos, buffer.full = state["replay"]["pos"], state["replay"]["full"]
        for name, rows in state["replay"]["rows"].items():
            getattr(buffer, name)[: len(rows)] = rows
    restore_environment(model.env, state["envs"])


def _replay_state(buffer: Any) -> dict[str, Any] | None:
    """The rows of a replay buffer that have been filled."""
    if buffer is None:
        return None
    filled = buffer.buffer_size if buffer.full else buffer.pos
    arrays = {name: value for name, value in vars(buffer).items() if isinstance(value, np.ndarray)}
    rows = {name: value[:filled] for name, value in arrays.items() if value.shape[:1] == (buffer.buffer_size,)}
    return {"pos": buffer.pos, "full": buffer.full, "rows": rows}


# --- the file ---------------------------------------------------------------------------------------------------------


class ResumeFile:
    """The file `<out>.resume` of a training.

    Args:
        path: of the file. call: the arguments of `train`; only the same call goes on.
    """

    def __init__(self, path: Path, call: Mapping[str, Any]) -> None:
        self.path, self.call = path, repr(sorted(call.items()))

    def write(self, model: Any, callback: Any) -> None:
        """Store the state; a kill, or a full disk, leaves the old file or the new one.

        Args:
            model: SB3's.
            callback: the `Checkpoints` of the run.
        """
        arrays: dict[str, NDArray[Any]] = {}
        state = {
            "model": model_state(model),
            "callback": callback.state(),
            **generator_states(),
        }
        header = json.dumps({"format": FORMAT, "call": self.call, "state": pack(state, arrays)})
        arrays[HEADER] = np.frombuffer(header.encode(), np.uint8)

        def store(path: Path) -> None:
            with path.open("wb") as file:  # NumPy would give the name a suffix of its own
                np.savez(file, allow_pickle=False, **arrays)

        write_alone(self.path, store)

    def read(self) -> dict[str, Any]:
        """What `write` has stored; nothing but the header is read of a file that belongs to another call.

        Raises:
            ValueError: if another call has written the file, or another version of this package, or if it is damaged.
        """
        with self.reading():
            with self.path.open("rb") as file:
                if not zipfile.is_zipfile(file):
                    raise ValueError("it is no file of arrays; older versions wrote pickles, which are not read")
            with np.load(self.path, allow_pickle=False) as archive:
                header = json.loads(archive[HEADER].tobytes())
                if header.get("format") != FORMAT:
                    raise ValueError(f"format {header.get('format')}, not {FORMAT}")
                call = header["call"]
                if call == self.call:
                    state: dict[str, Any] = unpack(header["state"], dict(archive))
        if call != self.call:
            raise ValueError(f"{self.path} belongs to another call: {call!r:.500}; not {self.call:.500}")
        return state

    def go_on(self, model: Any, callback: Any, state: Mapping[str, Any]) -> None:
        """Bring a model and a callback that were made anew to where the run was, and all random number generators.

        Args:
            model: SB3's.
            callback: the `Checkpoints` of the run.
            state: as `read` returns it.

        Raises:
            ValueError: if it does not fit them.
        """
        with self.reading():
            callback.restore(state["callback"])
            restore_model(model, state["model"])
            set_generators(state)

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Name the file in errors that arise from what it holds, and tell what to do.

        Raises:
            ValueError: for any of them, unless it is of the disk.
        """
        try:
            yield
        except Exception as error:
            if isinstance(error, OSError) and error.filename is not None:  # else it is a place that is not in the file
                raise
            told = f"{type(error).__name__}: {' '.join(str(error).split())}"
            raise ValueError(
                f"{self.path} was written by another version ({told:.300}), or is damaged: delete it, and train again "
                "from the beginning"
            ) from error

    def remove(self) -> None:
        """Delete the file when the run is over."""
        self.path.unlink(missing_ok=True)
