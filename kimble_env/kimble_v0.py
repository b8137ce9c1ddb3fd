"""PettingZoo's way to import the environment: ``from kimble_env import kimble_v0``."""

from kimble_env.aec import env, raw_env
from kimble_env.off_board import off_board_env

__all__ = ["env", "off_board_env", "raw_env"]
