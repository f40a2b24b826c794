"""An index entry that met a held lock follows by itself (spec 2.6)."""
import time

from echo_core.kinds import INDEX
from echo_mcp import jobs
from echo_mcp.health import Health
from opsfixture import call, get, make_ctx, put


def test_an_entry_that_met_a_held_lock_follows_without_another_write(tmp_path):
    """Somebody held the lock for too long; once it is free the note is entered."""
    ctx = make_ctx(tmp_path)
    call(ctx, "capture", title="Ada Lovelace", kind="person", body="x")
    put(tmp_path, "resources/people/mary.md", "---\ntitle: Mary Somerville\n---\n")
    ctx.index.pending.add("resources/people/mary.md")
    job = jobs.flusher(ctx, Health(ctx.reach))
    job.start()
    end = time.monotonic() + 20
    while "Mary Somerville" not in get(tmp_path, INDEX):
        assert time.monotonic() < end
        time.sleep(0.02)
    job.stop()
    job.join(10)
    assert ctx.index.pending == set()
    ctx.history.close()
