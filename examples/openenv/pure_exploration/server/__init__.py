"""The server: `app.py`. What `reset` takes is in `settings.py`, and what a frame may hold in `door.py`."""
