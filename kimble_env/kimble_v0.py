"""PettingZoo's way to import the environment: ``from kimble_env import kimble_v0``."""

from kimble_env.aec import env, raw_env

__all__ = ["env", "raw_env"]
