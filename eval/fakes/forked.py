"""Runs a piece of a test in a process of its own: as nobody, or to be killed at a chosen step."""
import multiprocessing
import os
from collections.abc import Callable
from typing import Any

NOBODY = 65534
KILLED = 9


def in_child(work: Callable[[], Any], as_nobody: bool = False) -> Any:
    """What `work` returns, or the exception it raised as "TypeName: message"; None when the child died.

    as_nobody: give up root first, so that file permissions count; without root they count anyway.
    """
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)

    def child() -> None:
        if as_nobody and os.geteuid() == 0:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
        try:
            theirs.send(work())
        except Exception as error:
            theirs.send(f"{type(error).__name__}: {error}")

    process = context.Process(target=child)
    process.start()
    theirs.close()
    try:
        return ours.recv()
    except EOFError:
        return None
    finally:
        process.join()
        ours.close()


def dying_at(step: int, modules_and_names: list[tuple[Any, str]], work: Callable[[], Any]) -> bool:
    """Run `work` in a child that dies without a farewell right before its call number `step` of the functions.

    Returns whether it died; False means that `work` came to its end in fewer calls.
    """
    def counted() -> bool:
        left = [step]

        def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
            def call(*args: Any, **kwargs: Any) -> Any:
                left[0] -= 1
                if left[0] == 0:
                    os._exit(KILLED)
                return original(*args, **kwargs)

            return call

        for module, name in modules_and_names:
            setattr(module, name, wrap(getattr(module, name)))
        work()
        return True

    return in_child(counted) is None
