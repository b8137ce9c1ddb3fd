"""``kimble serve``: moves, games and events over HTTP and WebSocket.

* ``app``: puts everything together; ``settings``: what an operator can set
* ``stateless``: positions in, answers out (``kimble_app.api`` thinks, this carries)
* ``table``: one game with its seats, dice and undo, and no database
* ``dice``: dice that anybody can check afterwards
* ``store``: games in SQLite or PostgreSQL; ``host``: games, stored and shared between clients
* ``game_routes``, ``live``: games over HTTP and over WebSocket
* ``guards``: keys, limits and errors round everything; ``work``: threads; ``metrics``: figures
"""
