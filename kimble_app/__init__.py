"""The doors of Kimble RL: the command line. (The service and the engine come later.)"""
