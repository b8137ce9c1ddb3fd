"""How one learns: masked PPO on the vector environment. The one room where torch may be imported."""
