"""A program steers its session, and its token ends: over the wire, from the command line, and by hostile requests."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from pathlib import Path
from typing import Any

import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import GenerationMode, checks
from schemathesis.core.result import Ok

from bot.simulation.anthropic import Call, Say, Script, Wait
from bot.web.api import openapi
from tests.api.tokens import api_client
from tests.world import World
from tests.world.command_line import forgehand

EXAMPLES = 6
ALL = list(HealthCheck)
CHECKS = [
    checks.not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_schema_conformance,
]


async def test_api_token_steers_stops_and_ends_also_from_the_command_line(world: World, tmp_path: Path) -> None:
    world.model.default(Script([Call("Bash", {"command": "true"}, "I begin."), Wait("go"), Say("Done.")]))
    async with world.bot() as service, api_client(world, service.url, kind_ask="yes", kind_plan="yes") as program:
        file = tmp_path / "token"
        file.write_text(program.secret)
        begin = ("sessions", "start", program.repository, str(world.issue.number), "tidy up", "--url", service.url)
        ran = await forgehand(world.environment, *begin, "--token-file", str(file), "--json")
        assert ran.code == 0, ran.text
        session = ran.json["session"]
        await world.model.reached("go", timeout=60)
        said = await program.post(f"/sessions/{session}/messages", {"text": "mind the tests"})
        assert said.status_code == 200 and "under way" in said.json()["said"]
        denied = await program.post(f"/sessions/{session}/approvals", {"approval": f"{session}-1", "answer": "approve"})
        assert denied.status_code == 403
        full = await program.start(world.issue.number, prompt="and more")
        assert full.status_code == 403 and "budget" in full.json()["error"]["message"], "the running turn may spend it"
        stopped = await program.post(f"/sessions/{session}/stop", key="stop-1")
        assert stopped.status_code == 200
        assert await world.outcome() == "stopped"
        assert (await program.post(f"/sessions/{session}/stop", key="stop-1")).json() == stopped.json()

        listed = await forgehand(world.environment, "tokens", "list", "--json")
        assert [(one["name"], one["state"]) for one in listed.json] == [("ci", "works")]
        account = ("--installation", "octo-org")
        scope = ("--repo", world.repo.full_name, "--kind", "ask", "--budget", "1")
        bad = await forgehand(world.environment, "tokens", "create", "ci", *account, "--for", "olga", *scope)
        assert bad.code == 1 and "new name" in bad.err
        made = await forgehand(world.environment, "tokens", "create", "ci-2", *account, "--for", "olga", *scope)
        assert made.code == 0 and made.out.startswith("fhat_")
        revoked = await forgehand(world.environment, "tokens", "revoke", "ci", *account)
        assert revoked.code == 0
        gone = await forgehand({**world.environment, "FORGEHAND_API_TOKEN": program.secret}, *begin)
        assert gone.code == 1 and "token that works" in gone.err and program.secret not in gone.text
        assert (await program.get(f"/sessions/{session}")).status_code == 401


async def test_api_approval_answers_a_plan_in_its_makers_name(world: World) -> None:
    world.model.default(Script([Say("1. Look. 2. Fix.")]))
    async with world.bot() as service, api_client(world, service.url, kind_plan="yes", may_answer="yes") as program:
        started = await program.start(world.issue.number, kind="plan", prompt="plan it", budget_usd=1)
        session = started.json()["session"]
        assert await world.outcome() == "planned"
        waiting = (await program.get(f"/sessions/{session}")).json()["approvals"]
        assert [one["asks"] for one in waiting] == ["1. Look. 2. Fix."]
        answer = {"approval": waiting[0]["id"], "answer": "approve"}
        yes = await program.post(f"/sessions/{session}/approvals", answer)
        assert (yes.status_code, yes.json()["turn"]) == (200, 2)
        again = await program.post(f"/sessions/{session}/approvals", answer)
        assert again.status_code == 403 and "olga" in again.json()["error"]["message"]


async def test_api_keeps_to_its_openapi_document_whatever_schemathesis_sends(world: World) -> None:
    """No repository of the token has a name that comes up by chance, so nothing starts."""
    schema = schemathesis.openapi.from_dict(json.loads(openapi.document()))
    async with world.bot() as service, api_client(world, service.url) as program:
        token = {"Authorization": f"Bearer {program.secret}"}
        answered: Counter[int] = Counter()

        def send(case: schemathesis.Case[Any]) -> None:
            answer = case.call(base_url=service.url, headers=token)
            answered[answer.status_code] += 1
            case.validate_response(answer, checks=CHECKS)

        def send_all() -> None:
            for result in schema.get_all_operations():
                assert isinstance(result, Ok)
                for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
                    hostile = settings(max_examples=EXAMPLES, database=None, deadline=None, suppress_health_check=ALL)
                    hostile(given(result.ok().as_strategy(mode))(send))()

        await asyncio.to_thread(send_all)
    assert answered[404] and answered[422] and answered[401] and not world.states(), answered
