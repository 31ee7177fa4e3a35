"""The thread that gives live views their turns."""

from __future__ import annotations

import threading

from flowbook.widgets.publisher import Publisher


class View:
    """Counts its turns."""

    def __init__(self, wanted: int = 3, breaks: bool = False) -> None:
        self.turns = 0
        self.failure: Exception | None = None
        self.had_turns = threading.Event()
        self.threads: set[threading.Thread] = set()
        self._wanted = wanted
        self._breaks = breaks

    def publish(self) -> None:
        self.turns += 1
        self.threads.add(threading.current_thread())
        if self.turns >= self._wanted:
            self.had_turns.set()
        if self._breaks:
            raise ValueError("broken")

    def fail(self, error: Exception) -> None:
        self.failure = error


def test_one_thread_serves_all_views_and_ends_with_the_last() -> None:
    publisher = Publisher()
    views = [View(), View()]
    for view in views:
        publisher.add(view)
    for view in views:
        assert view.had_turns.wait(60)
    [thread] = views[0].threads | views[1].threads
    assert thread.daemon
    for view in views:
        publisher.discard(view)
    publisher.discard(views[0])  # It does not matter.
    thread.join(60)
    assert not thread.is_alive()
    again = View()
    publisher.add(again)
    assert again.had_turns.wait(60)
    assert again.threads != {thread}
    publisher.discard(again)


def test_a_view_that_breaks_has_no_more_turns_and_the_others_go_on() -> None:
    publisher = Publisher()
    broken, sound = View(wanted=1, breaks=True), View()
    publisher.add(broken)
    publisher.add(sound)
    assert sound.had_turns.wait(60)
    assert broken.turns == 1
    assert isinstance(broken.failure, ValueError)
    publisher.discard(sound)
