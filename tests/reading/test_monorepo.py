"""A repository of several projects: rules, setup, checks and money of its folders, over the wire with the real CLI."""

from __future__ import annotations

import json

from bot.simulation.anthropic import Call, Say, Script
from sandbox.local.folders import WORK
from tests.world import World

CONFIG = """\
budget: 4
checks: ["test -f README.md"]
paths:
  services/pay/**:
    setup: ["echo ready > .ready"]
    checks: ["grep -q ready .ready", "grep -q 2 services/pay/pay.py"]
    budget: 3
    instructions: PAY-INSTRUCTION
  services/web/**:
    checks: [exit 7]
    instructions: WEB-INSTRUCTION
  "*.sql": {checks: [exit 8]}
"""
RULES = {
    "README.md": "Shop\n",
    ".gitignore": ".ready\n",
    ".github/forgehand.yml": CONFIG,
    "CLAUDE.md": "ROOT-RULE of @docs/style.md. Not `@docs/span.md`.\n\n"
    "```\n@docs/fenced.md\n```\n\n@~/x.md @../../y.md @bob\n",
    "docs/style.md": "STYLE-RULE @deep.md @../CLAUDE.md <!-- @hidden.md -->\n",
    "docs/deep.md": "DEEP-RULE\n",
    **{f"docs/{name}.md": "NEVER-RULE\n" for name in ("span", "fenced", "hidden")},
    "services/CLAUDE.md": "SERVICES-RULE\n",
    "services/pay/AGENTS.md": "PAY-RULE\n",
    "services/pay/pay.py": "PAY = 1\n",
    "services/web/CLAUDE.md": "WEB-RULE @more.md\n",
    "services/web/more.md": "MORE-RULE\n",
    "services/web/web.py": "WEB = 1\n",
    "libs/big/CLAUDE.md": f"BIG-RULE\n\n{'long ' * 4_000}\n\nBIG-END\n",
    "libs/big/big.py": "BIG = 1\n",
}
TOUCH = [
    Call("Read", {"file_path": f"{WORK}/services/web/web.py"}),
    Call("Bash", {"command": "cd libs/big && cat big.py", "description": "Look"}),
    Call("Bash", {"command": f"cat {WORK}/services/web/web.py; cd {WORK}", "description": "Look again"}),
]
PAY = Call("Bash", {"command": "echo 'PAY = 2' > services/pay/pay.py", "description": "Change"})


def sent(world: World, since: int = 0) -> list[str]:
    """Each request of an agent, as text."""
    return [json.dumps(dict(one.body)) for one in world.model.requests[since:] if one.has_tools]


def said(world: World) -> str:
    return world.replies()[-1].body.replace("\n", " ")


async def test_a_folder_has_its_rules_setup_checks_and_money_and_others_come_when_touched(world: World) -> None:
    world.github.commit(world.repo, "main", RULES, by="alice")
    world.model.default(Script([*TOUCH, PAY, Say("Done.")]))
    async with world.bot():
        world.say("/claude count twice --in services/pay")
        assert await world.outcome() == "pull_request", said(world)
        requests = sent(world)
        for rule in ("ROOT", "STYLE", "DEEP", "SERVICES", "PAY"):
            assert requests[0].count(f"{rule}-RULE") == 1, rule
        assert "PAY-INSTRUCTION" in requests[0] and "NEVER-RULE" not in requests[-1]
        assert "WEB-RULE" not in requests[0] and "BIG-RULE" not in requests[1]
        assert requests[1].count("WEB-RULE") == requests[1].count("MORE-RULE") == 1
        assert requests[2].count("BIG-RULE") == requests[-1].count("WEB-RULE") == 1
        assert "BIG-END" not in requests[-1] and "all of it is in /" in requests[2]
        assert "PAY-RULE" not in requests[-1].partition("SERVICES-RULE")[2].partition("PAY-RULE")[2], "it has them"
        comment = said(world)
        assert (
            "`services/pay`, with the rules of `services/CLAUDE.md`, `services/pay/AGENTS.md` and the settings for"
            in comment
        )
        assert "of $3.00" in comment and "y.md, which CLAUDE.md imports: it is outside" in comment
        for check in ("test -f README.md", "grep -q ready .ready", "grep -q 2 services/pay/pay.py"):
            assert f"✓ `{check}` exit 0" in comment, comment
        assert "exit 7" not in comment and "exit 8" not in comment

        at = len(world.model.requests)
        world.model.default(Script([Say("So it is.")]))
        world.say("/claude ask why is services/web/web.py so short?")
        assert await world.outcome(2) == "answered", said(world)
        assert "WEB-RULE" in sent(world, at)[0] and "PAY-RULE" not in sent(world, at)[0]
        assert "of $4.00" in said(world)

        world.say("/claude ask why? --in services/pai")
        assert await world.outcome(3) == "failed"
        assert "there is no folder `services/pai`" in said(world) and "Did you mean `services/pay`?" in said(world)
        world.say("/claude ask why? --in ../etc")
        await world.github.changed(lambda: "`--in` takes the path of a folder" in said(world), 20)

        # More money for a turn that the folder's budget has ended goes to work in that folder.
        poor = CONFIG.replace("budget: 3", "budget: 0.01")
        world.github.commit(world.repo, "main", {".github/forgehand.yml": poor}, by="alice")
        world.say("/claude ask why? --in services/pay")
        assert await world.outcome(4) == "over_budget", said(world)
        world.say("/claude continue +1")
        assert await world.outcome(5) == "answered", said(world)
        assert "**Folder:** `services/pay`" in said(world), said(world)


async def test_a_pull_request_has_the_folders_of_its_files_and_cannot_change_its_own_rules(world: World) -> None:
    world.github.commit(world.repo, "main", RULES, by="alice")
    head = {
        "services/web/CLAUDE.md": "HEAD-RULE\n",
        "services/web/more.md": "HEAD-RULE\n",
        "services/new/CLAUDE.md": "HEAD-RULE\n",
        "services/web/web.py": "WEB = 2\n",
        ".github/forgehand.yml": "paths: {services/web/**: {instructions: HEAD-RULE}}\n",
    }
    world.github.commit(world.repo, "topic", head, by="alice")
    pull = world.github.open_pull(world.repo, head="topic", by="alice", title="Topic")
    look = [Call("Read", {"file_path": f"{WORK}/{one}/web.py"}) for one in ("services/web", "services/new")]
    write = Call("Bash", {"command": "echo x > services/web/a.sql; echo 'WEB = 3' > services/web/web.py"})
    world.model.default(Script([*look, write, Say("Done.")]))
    async with world.bot():
        world.say("/claude go on", on=pull)
        assert await world.outcome(on=pull) == "pushed", world.replies(pull)[-1].body
    requests, prompt = sent(world), world.model.requests[0].prompt
    for rule in ("ROOT-RULE", "SERVICES-RULE", "WEB-RULE", "MORE-RULE", "WEB-INSTRUCTION"):
        assert rule in requests[0], rule
    outside = requests[-1].replace(json.dumps(prompt)[1:-1], "")
    assert "HEAD-RULE" not in outside
    comment = world.replies(pull)[-1].body.replace("\n", " ")
    assert "**Folder:** `services/web`, with the rules of" in comment and "settings for `services/web/**`." in comment
    assert "✗ `exit 7`" in comment and "✗ `exit 8`" in comment and "grep -q" not in comment
