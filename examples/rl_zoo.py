"""RL Zoo trains the equivariant policy with the YAML that comes with the package (the first argument: steps).

RL Zoo makes its environments one by one, so that the native VecEnv does not serve here; `agents.train` uses it.
"""

import subprocess
import sys
from importlib.resources import files

steps = sys.argv[1] if len(sys.argv) > 1 else "200000"
yaml = files("agents") / "models" / "rl_zoo.yml"
command = [
    "-m",
    "rl_zoo3.train",
    "--algo",
    "ppo",
    "--env",
    "bandit_envs/Threshold-learn-v0",
    "--gym-packages",
    "bandit_envs",
    "--conf-file",
    str(yaml),
    "--n-timesteps",
    steps,
    "--eval-freq",
    "-1",
    "--device",
    "cpu",
    "--num-threads",
    "1",
    "--log-folder",
    "rl_zoo_logs",
    "--seed",
    "0",
]
done = subprocess.run([sys.executable, *command], capture_output=True, text=True, check=False)
print(done.stdout[-1500:], done.stderr[-1500:])
if done.returncode:
    sys.exit(done.returncode)
