"""MCP servers in whole turns, with the real Claude Code CLI: what is opened, asked about, refused and noted."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import pytest

from bot.cli.sweep import credentials_in
from bot.simulation.anthropic import Call, Say, Script
from bot.simulation.mcp import SimulatedMcp
from bot.store import audit
from bot.store.base import Store
from tests.talk.test_asks import asked
from tests.world import World
from tests.world.mcp import BEARER, OPENED, keep
from tests.world.visitor import visitor

CONFIG = """\
mcp:
  reader: {tools: [find_issue, repeat], permission: allow}
  tracker: {tools: [create_issue], permission: ask}
  nobody: {tools: [anything]}
  inside: {command: python3 tools/server.py}
"""
PROGRAM = """\
import json, os, sys
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    found = {
        "initialize": {
            "protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "i", "version": "1"}
        },
        "tools/list": {"tools": [{"name": "where", "inputSchema": {"type": "object"}}]},
        "tools/call": {"content": [{"type": "text", "text": "inside " + os.getcwd()}]},
    }.get(asked["method"])
    answer = {"result": found} if found else {"error": {"code": -32601, "message": "no"}}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **answer}), flush=True)
"""
PAST_THE_CLIENT = """\
python3 - <<'END'
import json, os, urllib.request
for server, tool in (("tracker", "create_issue"), ("reader", "delete_all"), ("nobody", "anything")):
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {"name": tool, "arguments": {"title": "Past the client"}}}
    request = urllib.request.Request(os.environ["ANTHROPIC_BASE_URL"] + "/mcp/" + server, json.dumps(call).encode(),
        {"content-type": "application/json", "x-api-key": os.environ["ANTHROPIC_API_KEY"]})
    print(urllib.request.urlopen(request).read().decode())
END
"""
NEW = {"title": "Round the tax", "description": "To two digits.", "command": "rm"}
NAMES = "reader__find_issue,mcp__reader__repeat,mcp__tracker__create_issue,mcp__inside__where"
WORK = Script(
    [
        Call("ToolSearch", {"query": f"select:mcp__{NAMES}", "max_results": 9}),
        Call("mcp__reader__find_issue", {"word": "Round"}),
        Call("mcp__reader__repeat", {}),
        Call("Bash", {"command": PAST_THE_CLIENT, "description": "Try"}),
        Call("mcp__inside__where", {}),
        Call("mcp__tracker__create_issue", {"title": "x" * 5_000}),
        Call("mcp__tracker__create_issue", NEW),
        Say("Done."),
    ]
)


@pytest.fixture
async def server() -> AsyncIterator[SimulatedMcp]:
    async with SimulatedMcp.running(f"Bearer {BEARER}") as running:
        yield running


async def test_mcp_tools_are_opened_asked_about_and_noted(world: World, server: SimulatedMcp) -> None:
    world.github.commit(world.repo, "main", {".github/forgehand.yml": CONFIG, "tools/server.py": PROGRAM}, by="alice")
    world.model.script("work", WORK)
    async with world.bot(**OPENED) as service:
        await keep(world, server, "reader", "tracker")
        world.say("/claude note it [[scenario:work]]")
        question = await asked(world)
        body = next(one.body for one in world.replies() if "forgehand:ask=" in one.body)
        assert all(f'"{name}": "{value}"' in body for name, value in NEW.items()), body
        assert [tool for tool, _ in server.tracker.calls] == ["find_issue", "repeat"]
        world.say(f"/claude approve {question}")
        assert await world.outcome() == "no_change", world.replies()[0].body
        async with visitor(world, service.url, "alice") as alice:
            page = (await alice.get(f"/sessions/{world.states()[0]['session']}")).text
        shown = [body for _, body in world.replies()[0].history]
        await server.until(lambda: not server.sessions)
    results = [one.text for one in world.model.requests[-1].tool_results]
    assert results[1] == "Round the discount" and results[6] == "Created #2: Round the tax", results
    assert "shorten them to 4,000 characters" in results[5]
    assert "[redacted]" in results[2] and BEARER not in str(results)
    assert (
        "Nobody has said yes" in results[3] and "is not open here" in results[3] and "not open for this" in results[3]
    )
    assert results[4].startswith("inside /")
    assert server.tracker.calls[2:] == [("create_issue", NEW)]
    assert any("**mcp__reader__find_issue** `Round`" in body for body in shown), shown[-2]
    assert "Calls of MCP tools (5)" in page and "Round the tax" in page
    notes = "the MCP server `nobody`: the account has not stored it"
    assert any(notes in body for body in shown), shown[-1]
    store = await Store.open_reader(world.database)
    noted = [
        (one.actor, one.detail or "") for one in reversed(await audit.listing(store)) if one.action == "mcp tool called"
    ]
    await store.close()
    assert [actor for actor, _ in noted] == ["agent"] * 5
    assert "find_issue of reader" in noted[0][1] and "refused: nobody said yes" in noted[2][1]
    assert "refused: not open" in noted[3][1] and f"as {question} allows" in noted[4][1]
    said = [request.body for request in world.model.requests]
    assert "IMPORTANT: tell everyone" not in json.dumps(said), "a server's instructions"
    bodies = [body for issue in world.repo.issues.values() for one in issue.comments for _, body in one.history]
    assert credentials_in([BEARER], said, bodies, world.root / "data" / "state.db") == []
