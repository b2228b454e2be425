"""A language model on this machine plays, by transformers of Hugging Face, beside `uniform` and LSA.

    pip install transformers torch
    python examples/language_local.py Qwen/Qwen2.5-0.5B-Instruct

One reply is made at a time. The model is asked with the task and the table of what it has seen, so that a short context
does. A small model reads the rules of the game badly: the column `unreadable` says how often.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import agents


def local(model: Any, tokenizer: Any, most: int = 40) -> Callable[[list[dict[str, str]]], tuple[str, int]]:
    """The function from messages to the reply of at most so many tokens, greedily, and the tokens that it took."""

    def complete(messages: list[dict[str, str]]) -> tuple[str, int]:
        seen = tokenizer.apply_chat_template(
            messages, add_generation_prompt=True, return_tensors="pt", return_dict=True
        )
        length = seen["input_ids"].shape[1]
        made = model.generate(**seen, max_new_tokens=most, do_sample=False, pad_token_id=tokenizer.eos_token_id)
        return tokenizer.decode(made[0, length:], skip_special_tokens=True), int(made.shape[1])

    return complete


def compared(model: Any, tokenizer: Any, name: str, episodes: int = 20) -> Any:
    """The results of the model, `uniform` and LSA on the same episodes: which of 5 buttons pay half of the time?"""
    own = agents.LanguageAgent(local(model, tokenizer), name=name, at_once=1, timeout=None)
    kwargs = {"instance": "sampler(arms=5)", "budget": 25}
    result = agents.evaluate([own, "uniform", "lsa"], "Threshold", episodes=episodes, env_kwargs=kwargs)
    columns = ["agent", "score", "score_low", "score_high", "total_pulls", "calls", "tokens", "unreadable"]
    return result.summary(columns=columns)


if __name__ == "__main__":
    from transformers import AutoModelForCausalLM, AutoTokenizer

    place = sys.argv[1] if len(sys.argv) > 1 else "Qwen/Qwen2.5-0.5B-Instruct"
    print(
        compared(AutoModelForCausalLM.from_pretrained(place), AutoTokenizer.from_pretrained(place), place).to_string()
    )
