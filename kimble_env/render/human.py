"""A window to watch games in, with pygame-ce from the extra ``render``.

The window shows the frames of :func:`~kimble_env.render.rgb_array`, drawn anew in its own size, so
the picture is the same as in videos and stays sharp when the window is resized. pygame is imported
when the first window opens, never before. It works without a screen too, under
``SDL_VIDEODRIVER=dummy``.
"""

from __future__ import annotations

import time
from types import ModuleType
from typing import Any

from kimble_env.errors import RulesError
from kimble_env.render.layout import HEIGHT, WIDTH
from kimble_env.render.pixels import MIN_WIDTH, Frame, rgb_array
from kimble_env.render.view import LastMove, make_view

_windows: list[Window] = []  # those open now: the queue of events is shared by all
BACKGROUND = (255, 255, 255)


def import_pygame() -> ModuleType:
    """Return pygame-ce.

    Raises:
        ImportError: it is missing, or the older pygame stands in its place; the message names the
            extra to install.
    """
    hint = "install it with: pip install 'kimble-rl[render]'"
    try:
        import pygame
    except ImportError:
        raise ImportError(f"a window needs pygame-ce; {hint}") from None
    if not hasattr(pygame, "Window"):
        raise ImportError(
            f"a window needs pygame-ce 2.5 or newer, found pygame {pygame.version.ver}, which "
            f"has the same import name: pip uninstall pygame, then {hint}"
        )
    return pygame


class Window:
    """A window that shows one game at a time. It opens with the first :meth:`show`.

    >>> with Window(fps=4) as window:
    ...     while not game.result and window.show(game):
    ...         ...

    Args:
        width: of the picture in pixels, at least 160; it is 1.1 times as high.
        title: of the window.
        fps: at most so many pictures a second: :meth:`show` waits as long as it must. None: no
            waiting.
        viewer: the seat at the lower left, 0 to 3.

    Raises:
        RulesError: an argument out of range.
    """

    def __init__(
        self, *, width: int = 640, title: str = "Kimble", fps: float | None = None, viewer: int = 0
    ) -> None:
        if not isinstance(width, int) or width < MIN_WIDTH:
            raise RulesError(f"width must be a whole number from {MIN_WIDTH} up, got {width!r}")
        if fps is not None and not fps > 0:
            raise RulesError(f"fps must be above 0 or None, got {fps!r}")
        if viewer not in range(4):
            raise RulesError(f"viewer must be a seat 0 to 3, got {viewer!r}")
        self.width, self.title, self.fps, self.viewer = width, title, fps, viewer
        self._window: Any = None
        self._shut = False
        self._shown: tuple[Any, Any, LastMove | None] | None = None
        self._next_time = 0.0

    @property
    def is_open(self) -> bool:
        """Whether the window is on the screen."""
        return self._window is not None

    @property
    def was_shut(self) -> bool:
        """Whether the user has closed the window. Later pictures are then not shown."""
        return self._shut

    def show(self, rules: Any, state: Any = None, *, last: LastMove | None = None) -> bool:
        """Show a position; open the window if it has not been yet.

        Args:
            rules, state, last: as in :func:`~kimble_env.render.rgb_array`.

        Returns:
            False once the user has closed the window (nothing is shown any more), else True.

        Raises:
            ImportError: pygame-ce is missing; the message names the extra ``render``.
            RuntimeError: there is no screen.
            PositionError, RulesError: as :func:`~kimble_env.render.rgb_array`.
        """
        make_view(rules, state, last)  # what cannot be drawn opens no window
        if self._shut:
            return False
        pygame = import_pygame()
        if self._window is None:
            self._open(pygame)
        _handle_events(pygame)
        if self._window is None:
            return False
        self._wait()
        self._draw(pygame, rules, state, last)
        return True

    def _open(self, pygame: ModuleType) -> None:
        try:
            pygame.display.init()
        except pygame.error as error:
            raise RuntimeError(
                f"no screen to open a window on ({error}); use rgb_array, or set "
                "SDL_VIDEODRIVER=dummy to draw without one"
            ) from None
        size = (self.width, round(self.width * HEIGHT / WIDTH))
        self._window = pygame.Window(self.title, size, resizable=True)
        self._window.minimum_size = (MIN_WIDTH, round(MIN_WIDTH * HEIGHT / WIDTH))
        _windows.append(self)

    def _wait(self) -> None:
        """Wait until the next picture is due."""
        if self.fps is not None:
            now = time.monotonic()
            if self._next_time > now:
                time.sleep(self._next_time - now)
            self._next_time = max(now, self._next_time) + 1.0 / self.fps

    def _draw(self, pygame: ModuleType, rules: Any, state: Any, last: LastMove | None) -> None:
        surface = self._window.get_surface()
        wide, high = surface.get_size()
        width = max(MIN_WIDTH, min(wide, int(high * WIDTH / HEIGHT)))
        frame: Frame = rgb_array(rules, state, width=width, viewer=self.viewer, last=last)
        surface.fill(BACKGROUND)
        picture = pygame.image.frombuffer(frame.tobytes(), frame.shape[1::-1], "RGB")
        surface.blit(picture, ((wide - frame.shape[1]) // 2, (high - frame.shape[0]) // 2))
        self._window.flip()

    def close(self) -> None:
        """Close the window, if it is open; :meth:`show` opens it again. May be called twice."""
        self._shut = False
        self._destroy()

    def _destroy(self) -> None:
        if self._window is not None:
            self._window.destroy()
            self._window = None
            _windows.remove(self)
            if not _windows:
                import_pygame().display.quit()

    def __enter__(self) -> Window:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _handle_events(pygame: ModuleType) -> None:
    """Take the events of all windows, so that they stay alive; close those the user closed."""
    for event in pygame.event.get():
        if event.type in (pygame.WINDOWCLOSE, pygame.QUIT):
            for window in list(_windows):
                if event.type == pygame.QUIT or event.window == window._window:
                    window._shut = True
                    window._destroy()
