"""Speed and memory of Kimble RL beside its peers: `python -m benchmarks.run --help`."""
