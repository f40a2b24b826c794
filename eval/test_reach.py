"""What the calls of a process find out about a vault being there, and how a hung one is spared (spec 4.1)."""
from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from inspect import signature

import pytest
from echo_core.errors import Conflict, EchoError, InvalidPath, NotFound, VaultAuth, VaultTls, VaultUnreachable
from echo_core.vault import reach as reach_module
from echo_core.vault.base import Vault
from echo_core.vault.forwarding import ForwardingVault
from echo_core.vault.reach import ReachedVault
from fakes.memory_vault import MemoryVault


def down(reason: str) -> VaultUnreachable:
    return VaultUnreachable("away", hint="wait", reason=reason)


@pytest.fixture
def memory() -> MemoryVault:
    return MemoryVault({"a.md": b"one"})


@pytest.fixture
def vault(memory: MemoryVault) -> ReachedVault:
    return ReachedVault(memory)


def fails(vault: Vault, failure: type[EchoError] = VaultUnreachable) -> EchoError:
    with pytest.raises(failure) as heard:
        vault.read("a.md")
    return heard.value


def test_a_vault_that_fails_is_away_until_somebody_gets_an_answer(memory: MemoryVault, vault: ReachedVault) -> None:
    """Why is known too, and since when."""
    assert vault.reach.away() is None
    memory.down = down("refused")
    fails(vault)
    away = vault.reach.away()
    assert away is not None
    assert (away.message, away.hint, away.data) == ("away", "wait", {"reason": "refused"})
    assert vault.reach.away_s() > 0
    memory.down = None
    assert vault.read("a.md") == b"one"
    assert (vault.reach.away(), vault.reach.away_s()) == (None, 0.0)


@pytest.mark.parametrize("answer", [NotFound("x"), Conflict("x"), VaultAuth("x")])
def test_a_refusal_is_an_answer(memory: MemoryVault, vault: ReachedVault, answer: EchoError) -> None:
    """Who says that there is no such note is there."""
    memory.down = down("refused")
    fails(vault)
    memory.down = answer
    fails(vault, type(answer))
    assert vault.reach.away() is None


@pytest.mark.parametrize("failure", [down("busy"), down("loading"), down("http-500"), VaultTls("x"), InvalidPath("x")])
def test_trouble_with_one_note_says_nothing_about_the_vault(
    memory: MemoryVault, vault: ReachedVault, failure: EchoError
) -> None:
    """Neither that it is away nor that it is back."""
    memory.down = failure
    fails(vault, type(failure))
    assert vault.reach.away() is None
    memory.down = down("refused")
    fails(vault)
    memory.down = failure
    fails(vault, type(failure))
    assert vault.reach.away() is not None


def test_what_a_check_hears_is_about_the_whole_vault(memory: MemoryVault, vault: ReachedVault) -> None:
    """An error of the server behind the address as well."""
    memory.down = down("http-500")
    with pytest.raises(VaultUnreachable):
        vault.check()
    assert vault.reach.away() is not None


def test_a_hung_vault_is_not_asked_again_until_a_probe_gets_through(memory: MemoryVault, vault: ReachedVault) -> None:
    """Three timeouts in a row, then nobody waits for a fourth."""
    memory.down = down("timeout")
    for _ in range(3):
        fails(vault)
    asked = memory.calls["read"]
    assert fails(vault).data["reason"] == "timeout"
    many = vault.read_many(["a.md"])
    for ask in (vault.check, vault.walk, lambda: vault.write("b.md", b"", None), lambda: next(many)):
        with pytest.raises(VaultUnreachable):
            ask()
    assert (memory.calls["read"], memory.calls["write"], memory.calls["walk"]) == (asked, 0, 0)
    with pytest.raises(VaultUnreachable):
        vault.reach.probe()
    memory.down = None
    fails(vault)
    vault.reach.probe()
    assert vault.read("a.md") == b"one"


def test_a_slow_vault_that_answers_now_and_then_is_always_asked(memory: MemoryVault, vault: ReachedVault) -> None:
    """Two timeouts, an answer, two timeouts."""
    for _ in range(3):
        memory.down = down("timeout")
        fails(vault)
        fails(vault)
        memory.down = None
        assert vault.read("a.md") == b"one"


def test_one_check_that_times_out_is_enough(memory: MemoryVault, vault: ReachedVault) -> None:
    """Nothing is asked more easily."""
    memory.down = down("timeout")
    with pytest.raises(VaultUnreachable):
        vault.check()
    assert vault.reach.hung()


def test_silence_is_noticed_before_the_first_timeout(
    memory: MemoryVault, vault: ReachedVault, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody waits, and nobody gets an answer; a whole walk may take its time."""
    now = 100.0
    monkeypatch.setattr(reach_module.time, "monotonic", lambda: now)
    vault = ReachedVault(memory)
    question: AbstractContextManager[None]
    slow = vault.reach.asking(quick=False)
    for question, expected in ((vault.reach.asking(), True), (slow, False), (nullcontext(), False)):
        with question:
            now += 3
            assert vault.reach.silent() is expected
            vault.read("a.md")
            assert not vault.reach.silent()
    assert not vault.reach.silent()


def test_threads_do_not_mix_up_their_questions(memory: MemoryVault, vault: ReachedVault) -> None:
    """After many answers at once nothing is open."""
    threads = [threading.Thread(target=lambda: [vault.read("a.md") for _ in range(200)]) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not vault.reach.silent()
    assert vault.reach.away() is None


def contract() -> Iterator[str]:
    return (name for name, value in vars(Vault).items() if callable(value) and not name.startswith("_"))


@pytest.mark.parametrize("method", list(contract()))
def test_a_wrapper_forwards_every_method_of_the_contract(method: str) -> None:
    """Also the ones that have a default, with every parameter: a backend may know better."""
    asked = []

    class Inner(Vault):
        pass

    setattr(Inner, method, lambda self, *given: asked.append(given))
    wanted = list(signature(getattr(Vault, method)).parameters.values())[1:]
    given = tuple(parameter.name for parameter in wanted)
    getattr(ForwardingVault(Inner()), method)(*given)
    assert asked == [given]
