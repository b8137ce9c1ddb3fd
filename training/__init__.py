"""How one learns: masked PPO on the vector environment. The one room that may import torch."""
