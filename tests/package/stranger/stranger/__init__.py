"""What a user may add to bandit-envs: the files of the pages own-agent, own-problem and own-distribution."""
