"""What every door answers, whatever carries it: HTTP, WebSocket, or lines on stdin.

* ``schema``: requests and answers as pydantic models, the one description of their fields
* ``answers``: a pure function for each question, from request to a dict that JSON can hold
* ``specs``: which agents a client may name, and the agents made so far
* ``positions``: many position texts at once
* ``errors``: ``{code, message, field}``
"""
