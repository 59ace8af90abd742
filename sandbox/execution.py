"""Runs an agent on a repository, in any environment and for any agent; knows nothing of GitHub."""

from __future__ import annotations

import asyncio
import contextlib
import json
import posixpath
import secrets
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from sandbox import blocked
from sandbox.agents.base import (
    Agent,
    AgentRun,
    clean,
    context_folder,
    folder_rules_files,
    instructions_path,
    plugin_folder,
    run_name,
    turn_folder,
)
from sandbox.blocked import Blocked
from sandbox.clients import PackageClients
from sandbox.errors import EnvironmentBusy, NotThere, SandboxError, TooLarge
from sandbox.following import Follower, Mailbox
from sandbox.primitives import CheckResult, Chunk, Collected, EnvironmentPrimitives, Liveness, RunState, RunStatus

__all__ = ["CheckResult", "Chunk", "Collected", "ExecutionEnvironment", "RunState", "RunStatus"]

PREPARE_SECONDS = 600.0
COLLECT_SECONDS = 180.0
SPARE_SECONDS = 15.0  # what a script gets beyond its own time limit before the environment ends it
TAIL_BYTES = 8 << 10
GRACE_SECONDS = 10.0
TRANSCRIPT_CAP = 64 << 20
OUTPUT_CAP = 6 << 20
MOST_CHANGED = 20
SMALL_FILE = 64 << 10
STOP_POLL_SECONDS = 0.05
KILLED = 137
MOST_SECONDS = 1e9
_NOT_OURS = (ValueError, KeyError, TypeError, ArithmeticError, RecursionError)
"""Errors from reading a report that the agent forged in place of our runner's."""


class ExecutionEnvironment:
    """A repository and an agent in an environment. Every method may be called again after a crash of the caller."""

    def __init__(self, primitives: EnvironmentPrimitives, agent: Agent, *, attempt: int = 0) -> None:
        """`attempt`: the number of the present run in its turn, from 0."""
        self.primitives = primitives
        self.agent = agent
        self._attempt = attempt
        self._layout = primitives.layout
        self._state = posixpath.join(self._layout.out, "checkout")

    async def prepare(  # noqa: PLR0913 - what a checkout is made of, named at the call
        self,
        pack: Path,
        sha: str,
        shallow: Sequence[str],
        branch: str,
        *,
        turn: int = 1,
        on: str | None = None,
        fresh: bool = False,
        saved: Path | None = None,
    ) -> bool:
        """Make a checkout that is exactly the commit, except for files that its ignore rules name. Files that this turn
        already has there stay, unless it is `fresh`; `fresh` also removes the agent's memory.

        `on`: the commit of the snapshot that the environment started from; the pack holds what came after it.
        `saved`: a bundle of this turn's earlier work, to be put on top of a new checkout.
        True: the results of earlier setup commands are still there."""
        # An earlier agent may have put something into this run's folder.
        launched = await self.primitives.liveness(self._name(turn)) is not Liveness.ABSENT
        memory = self.agent.own_paths(self._layout) if fresh else []
        inside = posixpath.join(self._state, "since.pack" if on else "base.pack")
        await self.primitives.upload(pack, inside)
        spec = {
            "state": self._state,
            "pack": inside,
            "sha": sha,
            "shallow": list(shallow),
            "branch": branch,
            "turn": turn,
            "on": on,
            "fresh": fresh,
            "remove": [*memory, *([] if launched else [self._folder(turn)])],
        }
        if saved is not None:
            spec["saved"] = kept = posixpath.join(self._state, "saved.bundle")
            await self.primitives.upload(saved, kept)
        return (await self._script("prepare", spec, PREPARE_SECONDS)).get("known") is True

    async def furnish(self, script: str, spec: Mapping[str, Any], files: Mapping[str, Path]) -> dict[str, Any]:
        """Bring files beside the checkout, and let a script of the runner put them into it."""
        for name, source in files.items():
            await self.primitives.upload(source, posixpath.join(self._state, name))
        return await self._script(script, {"state": self._state, **spec}, PREPARE_SECONDS)

    async def home(self) -> dict[str, str]:
        """Record the contents of the home before an agent comes, for `comb`."""
        found = (await self._script("homes", self._homes(), PREPARE_SECONDS)).get("home")
        return {str(name): str(digest) for name, digest in found.items()} if isinstance(found, dict) else {}

    async def comb(self, known: Mapping[str, str]) -> None:
        """Remove temporary files and everything that appeared in a used environment's home. SandboxError if something
        that was there before has changed."""
        spec = {**self._homes(), "known": dict(known)}
        changed = (await self._script("homes", spec, PREPARE_SECONDS)).get("changed")
        if changed != []:
            named = ", ".join(str(name)[:100] for name in _list(changed)[:3])
            raise SandboxError(f"the earlier turn has changed what was in its home before: {clean(named)}")

    def _homes(self) -> dict[str, Any]:
        own = [posixpath.basename(path) for path in self.agent.own_paths(self._layout)]
        return {"home": self._layout.home, "own": own}

    async def setup(
        self,
        commands: Sequence[str],
        timeout: float,
        *,
        env: Mapping[str, str] | None = None,
        clients: PackageClients | None = None,
    ) -> list[CheckResult]:
        """Run commands one after the other until one fails, all within `timeout`; only they see `env`."""
        done: list[CheckResult] = []
        deadline = time.monotonic() + timeout
        for command in commands:
            left = max(0.0, deadline - time.monotonic())
            done.append(await self._command(command, left, env, clients=clients and clients.spec()))
            if done[-1].exit_code:
                break
        return done

    async def check(self, commands: Sequence[str], timeout: float) -> list[CheckResult]:
        """Run all commands, each within `timeout`."""
        return [await self._command(command, timeout, None) for command in commands]

    async def verify(
        self,
        command: str,
        timeout: float,
        output: Path,
        commit: str | None = None,
        clients: PackageClients | None = None,
    ) -> CheckResult:
        """Run one check and save its output (under a cap) in a file of the host, if no process spoilt it. With
        `commit`, the result lists files of the checkout that then differ from it."""
        log = posixpath.join(self._layout.out, f"check-{secrets.token_hex(4)}.log")
        told = clients and clients.spec()
        found = await self._command(command, timeout, None, log=log, commit=commit, clients=told)
        with contextlib.suppress(NotThere, TooLarge):
            await self.primitives.download(log, output, max_bytes=OUTPUT_CAP)
        return found

    async def start(self, run: AgentRun) -> None:
        """Launch the run of a turn, unless that turn was launched before."""
        folder = self._folder(run.turn)
        if (await self.status(run.turn)).state is not RunState.NOT_STARTED:
            return
        for name, source in run.beside.items():
            await self.primitives.upload(source, posixpath.join(self.context(run.turn), name))
        prompt = Mailbox.file("prompt", self.agent.message(run.prompt), order=0)
        files: dict[str, bytes] = {}
        executable: set[str] = set()
        for plugin in run.plugins:
            inside = plugin_folder(self._layout, run, plugin.name)
            files |= {posixpath.join(inside, path): data for path, data in plugin.files.items()}
            executable |= {posixpath.join(inside, path) for path in plugin.executable}
        await self.primitives.write_many(
            {
                **folder_rules_files(run, self._layout),
                instructions_path(self._layout, run.turn, run.attempt): run.instructions.encode(),
                posixpath.join(folder, "inbox", prompt[0]): prompt[1],
                posixpath.join(folder, "spec.json"): json.dumps(self._spec(run)).encode(),
                **files,
            },
            executable=executable,
        )
        argv = self._python("agent_run", posixpath.join(folder, "spec.json"))
        await self.primitives.launch(self._name(run.turn), argv, cwd=posixpath.dirname(self._layout.runner))

    def context(self, turn: int) -> str:
        """Return the folder in which the agent finds the files beside its prompt."""
        return context_folder(self._layout, turn, self._attempt)

    async def put_beside(self, turn: int, files: Mapping[str, bytes]) -> list[str]:
        """Give more files to an agent at work; return their paths inside."""
        found = {posixpath.join(self.context(turn), name): data for name, data in files.items()}
        await self.primitives.write_many(found)
        return list(found)

    async def blocked(self, since: float) -> list[Blocked]:
        """Return the hosts that the environment says it was refused; empty if its log is unreadable."""
        try:
            data = await self.primitives.read(posixpath.join(self._layout.out, blocked.LOG), limit=blocked.LOG_BYTES)
        except SandboxError:
            return []
        return blocked.counted(data, since)

    def follow(self, turn: int, offset: int) -> AsyncIterator[Chunk]:
        """Yield the run's output from a byte offset on, until the run has ended and all of it was read."""
        path = posixpath.join(self._folder(turn), "stream.jsonl")
        return Follower(self.primitives, self.agent, lambda: self.status(turn), path).chunks(offset)

    async def status(self, turn: int) -> RunStatus:
        """Judge by the process table and the runner's file. The agent could write that file too, so it counts only when
        no process of the run is left."""
        liveness = await self.primitives.liveness(self._name(turn))
        if liveness is Liveness.RUNNING:
            return RunStatus(RunState.RUNNING)
        if ending := await self._ending(turn):
            return ending
        lock = posixpath.join(self._folder(turn), "lock")
        started = liveness is Liveness.EXITED or await self.primitives.stat(lock) is not None
        return RunStatus(RunState.LOST if started else RunState.NOT_STARTED)

    async def steer(self, turn: int, message_id: str, text: str) -> bool:
        """Give the running agent a message. False: too late, it belongs to the next turn."""
        return await self._mailbox(turn).deliver(message_id, self.agent.message(text))

    async def ask(self, turn: int, request_id: str, text: str) -> bool:
        """Ask the running agent something beside its work; `SideAnswered` with this id follows. False: too late."""
        return await self._mailbox(turn).deliver(request_id, self.agent.question(request_id, text), quiet=True)

    async def permit(self, turn: int, request_id: str, tool_input: dict[str, Any] | None = None) -> bool:
        """Answer the agent's question with yes. Only the first answer to a question counts."""
        return await self._mailbox(turn).deliver(f"answer-{request_id}", self.agent.allow(request_id, tool_input))

    async def forbid(self, turn: int, request_id: str, reason: str, *, interrupt: bool = False) -> bool:
        """Answer the agent's question with no; with `interrupt` it stops what it is doing."""
        answer = self.agent.deny(request_id, reason, interrupt=interrupt)
        return await self._mailbox(turn).deliver(f"answer-{request_id}", answer)

    async def stop(self, turn: int, grace: float) -> None:
        """Ask the agent to end, and end it after `grace` seconds. Afterwards no process of it is left."""
        if await self._leave(turn, "stop", {"grace": grace}):
            for _ in range(round((grace + GRACE_SECONDS) / STOP_POLL_SECONDS)):
                if (await self.status(turn)).state is not RunState.RUNNING:
                    break
                await asyncio.sleep(STOP_POLL_SECONDS)
        await self.primitives.kill(self._name(turn))
        if (await self.status(turn)).state is RunState.LOST:
            ending = {"exit_code": KILLED, "timed_out": False, "stopped": True, "duration_seconds": 0.0, "error": ""}
            await self._leave(turn, "exit.json", ending)

    async def collect(self, turn: int, base: str, *, beside: bool = False) -> Collected:
        """Snapshot the work tree as it is now. `beside`: the agent still works, so this runs at low priority and with
        separate files."""
        out = posixpath.join(self._folder(turn), "beside") if beside else self._folder(turn)
        spec = {"out": out, "state": self._state, "base": base, "gently": beside}
        found = await self._script("collect", spec, COLLECT_SECONDS)
        return Collected(
            changed=found.get("changed") is True,
            tree=_text_or_none(found.get("tree")),
            subjects=tuple(clean(one) for one in _list(found.get("subjects")) if isinstance(one, str)),
            bundle=_text_or_none(found.get("bundle")),
            size=found["size"] if isinstance(found.get("size"), int) else 0,
            left_out=tuple(clean(one) for one in _list(found.get("left_out")) if isinstance(one, str)),
            inside=tuple(clean(one) for one in _list(found.get("inside"))[:MOST_CHANGED] if isinstance(one, str)),
        )

    async def fetch_bundle(self, collected: Collected, target: Path, max_bytes: int) -> None:
        """Download a bundle; TooLarge past the cap. It is untrusted: import it only into a quarantine."""
        if collected.bundle is None:
            raise NotThere("nothing was changed, so there is no bundle")
        await self.primitives.download(collected.bundle, target, max_bytes=max_bytes)

    async def transcript(self, agent_session_id: str) -> bytes | None:
        path = self.agent.transcript_path(self._layout, agent_session_id)
        parts: list[bytes] = []
        size = 0
        try:
            while data := await self.primitives.read(path, offset=size):
                parts.append(data)
                size += len(data)
                if size > TRANSCRIPT_CAP:
                    return None
        except NotThere:
            return None
        return b"".join(parts)

    async def restore_transcript(self, agent_session_id: str, data: bytes) -> None:
        await self.primitives.write(self.agent.transcript_path(self._layout, agent_session_id), data)

    async def close(self) -> None:
        await self.primitives.terminate()

    def _spec(self, run: AgentRun) -> dict[str, Any]:
        return {
            "argv": self.agent.argv(run, self._layout),
            "env": self.agent.environment(run, self._layout),
            "cwd": self._layout.work,
            "timeout_seconds": run.timeout_seconds,
            "grace_seconds": GRACE_SECONDS,
            "final_type": self.agent.final_type,
            "gateway_variable": self.agent.gateway_variable,
            "gateway_path": self.agent.gateway_path,
            "clients": run.clients and run.clients.spec(),
        }

    def _name(self, turn: int) -> str:
        return run_name(turn, self._attempt)

    def _folder(self, turn: int) -> str:
        return turn_folder(self._layout, turn, self._attempt)

    def _python(self, module: str, *arguments: str) -> list[str]:
        """Run a module of the runner's package from its parent folder, where no repository file can shadow it."""
        package = posixpath.basename(self._layout.runner)
        return [self._layout.python, "-E", "-s", "-S", "-B", "-m", f"{package}.{module}", *arguments]

    def _mailbox(self, turn: int) -> Mailbox:
        return Mailbox(self.primitives, self._folder(turn), lambda: self.status(turn))

    async def _command(self, command: str, timeout: float, env: Mapping[str, str] | None, **beside: Any) -> CheckResult:
        spec = {"command": command, "tail_bytes": TAIL_BYTES, **beside}
        found = await self._script("check", spec, timeout, env=env, network=True)
        try:
            return CheckResult(
                command=command,
                exit_code=_exit_code(found["exit_code"]),
                tail=clean(str(found["tail"]))[-TAIL_BYTES:],
                seconds=_seconds(found["seconds"]),
                timed_out=found["timed_out"] is True,
                changed=tuple(str(path)[:1000] for path in _list(found.get("changed"))[:MOST_CHANGED]),
            )
        except _NOT_OURS:
            raise SandboxError("The command's own processes spoilt the report of its end.") from None

    async def _script(
        self,
        module: str,
        spec: dict[str, Any],
        timeout: float,
        *,
        env: Mapping[str, str] | None = None,
        network: bool = False,
    ) -> dict[str, Any]:
        """Run one of the runner's short scripts: spec in, one JSON line out."""
        common = {"git": self._layout.git, "work": self._layout.work, "cwd": self._layout.work}
        result = await self.primitives.exec(
            self._python(module),
            stdin=json.dumps({**common, **spec, "timeout_seconds": timeout}).encode(),
            cwd=posixpath.dirname(self._layout.runner),
            env=env,
            timeout=timeout + SPARE_SECONDS,
            network=network,
        )
        if result.timed_out:
            raise EnvironmentBusy(f"{module} did not end within {timeout:.0f} seconds")
        return _answer(module, result.stdout, result.stderr)

    async def _ending(self, turn: int) -> RunStatus | None:
        path = posixpath.join(self._folder(turn), "exit.json")
        try:
            found = json.loads(await self.primitives.read(path, limit=SMALL_FILE))
            return RunStatus(
                RunState.EXITED,
                exit_code=_exit_code(found["exit_code"]),
                timed_out=found["timed_out"] is True,
                stopped=found["stopped"] is True,
                duration_seconds=_seconds(found["duration_seconds"]),
                error=str(found["error"])[:2000],
            )
        except NotThere:
            return None
        except _NOT_OURS:
            return RunStatus(RunState.EXITED, error="The file that says how the agent ended cannot be read.")

    async def _leave(self, turn: int, name: str, document: dict[str, Any]) -> bool:
        """Write a file for the runner. False if the agent made that impossible (no folder, full disk)."""
        path = posixpath.join(self._folder(turn), name)
        try:
            await self.primitives.write(path, json.dumps(document).encode())
        except (NotThere, EnvironmentBusy):
            return False
        return True


def _answer(module: str, output: bytes, errors: bytes) -> dict[str, Any]:
    """Read the script's one line, which comes out of the environment and may be anything."""
    try:
        found = json.loads(output)
    except (ValueError, RecursionError):
        words = errors.decode("utf-8", "replace").strip()[-500:]
        raise SandboxError(f"{module} gave no answer: {words}") from None
    if not isinstance(found, dict):
        raise SandboxError(f"{module} gave no answer")
    if found.get("ok", True) is not True:
        raise SandboxError(f"{module}: {str(found.get('error'))[:1000]}")
    return found


def _exit_code(value: Any) -> int:
    """Return an operating system's exit code; any other value does not come from our runner."""
    code = int(value)
    if not -255 <= code <= 255:
        raise ValueError("not an exit code")
    return code


def _seconds(value: Any) -> float:
    seconds = float(value)
    if not 0 <= seconds < MOST_SECONDS:
        raise ValueError("not a duration")
    return seconds


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _text_or_none(value: Any) -> str | None:
    return value if isinstance(value, str) else None
