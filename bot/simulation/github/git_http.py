"""Git over HTTP: GitHub's checks in front of the real `git http-backend`, streamed both ways."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import shlex
import sys
from pathlib import Path

from starlette.responses import PlainTextResponse, RedirectResponse
from starlette.types import Message, Receive, Scope, Send

from bot.simulation.github import auth, gitstore
from bot.simulation.github.accounts import Account
from bot.simulation.github.auth import Credential, Refusal
from bot.simulation.github.rest import Desk
from bot.simulation.github.state import Repository

CHUNK = 64 * 1024
WRITE_SERVICE = "git-receive-pack"
SERVICES = (WRITE_SERVICE, "git-upload-pack")


def install_hook(root: Path) -> Path:
    """Write one hook for all repositories, and return the folder for `core.hooksPath`."""
    folder = root / "hooks"
    folder.mkdir(parents=True, exist_ok=True)
    hook = folder / "proc-receive"
    script = Path(__file__).with_name("receive_hook.py")
    hook.write_text(f"#!/bin/sh\nexec {shlex.join([sys.executable, '-I', '-S', str(script)])}\n")
    hook.chmod(0o755)
    return folder


class GitHttp:
    """The ASGI app of `/{owner}/{repo}.git/{info/refs,git-upload-pack,git-receive-pack}`."""

    def __init__(self, desk: Desk, hooks: Path) -> None:
        self._desk = desk
        self._hooks = hooks

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        try:
            service = _service(scope)
            repo = self._find(scope)
            person = self._admit(scope, headers, repo, service)
        except Refusal as refusal:
            text = f"{refusal}\n"
            await PlainTextResponse(text, refusal.status, refusal.headers)(scope, receive, send)
            return
        if repo.full_name.lower() != f"{scope['path_params']['owner']}/{scope['path_params']['repo']}".lower():
            target = f"{self._desk.state.url}/{repo.full_name}.git/{scope['path_params']['tail']}"
            query = scope["query_string"].decode()
            await RedirectResponse(f"{target}?{query}".rstrip("?"), 301)(scope, receive, send)
            return
        environ = self._environ(scope, headers, repo, person)
        if service == WRITE_SERVICE and scope["method"] == "POST":
            await self._receive_pack(Backend(environ, receive), repo, person, send)
        else:
            await Backend(environ, receive).run(send)

    def _find(self, scope: Scope) -> Repository:
        name = f"{scope['path_params']['owner']}/{scope['path_params']['repo']}"
        repo = self._desk.state.repo(name) or self._desk.state.moved.get(name.lower())
        if repo is None or repo.deleted:
            raise Refusal(404, "Repository not found.")
        return repo

    def _admit(self, scope: Scope, headers: dict[str, str], repo: Repository, service: str) -> Account | None:
        """Return the account that pushes or fetches; 401 asks git for a password, 404 hides a private repository."""
        token = password(headers.get("authorization"))
        write = service == WRITE_SERVICE
        if token is None:
            if write or repo.private:
                raise Refusal(401, "No anonymous write access.", headers={"WWW-Authenticate": 'Basic realm="GitHub"'})
            return None
        try:
            credential = Credential("installation", token=auth.live_token(self._desk.state, token))
        except Refusal as refusal:
            if refusal.status == 401:
                text = "Invalid username or token. Password authentication is not supported for Git operations."
                raise Refusal(401, text, headers={"WWW-Authenticate": 'Basic realm="GitHub"'}) from None
            raise
        scope["forgehand.credential"] = credential.kind
        assert credential.token
        bot = credential.token.installation.app.bot
        try:
            auth.require(credential, repo, "contents:write" if write else "contents:read")
        except Refusal as refusal:
            raise _in_git_words(refusal, repo, bot) from None
        scope["forgehand.workflows"] = auth.holds(credential.token, "workflows", "write")
        return bot

    def _environ(
        self, scope: Scope, headers: dict[str, str], repo: Repository, person: Account | None
    ) -> dict[str, str]:
        rules = {
            "protections": [(each.pattern, each.code, each.lines, each.reason, each.only) for each in repo.protections],
            "workflows": scope.get("forgehand.workflows", True),
            "max_file_bytes": repo.max_file_bytes,
            "verified": sorted(repo.verified),
            "secrets": repo.known_secrets,
            "large": sorted(repo.large.held) if repo.large.held else None,
        }
        settings = {
            "core.hooksPath": str(self._hooks),
            "receive.procReceiveRefs": "refs",
            "receive.hideRefs": "refs/pull",
            "safe.directory": "*",
        }
        environ = gitstore.environment() | {
            "GIT_PROJECT_ROOT": str(repo.path),
            "GIT_HTTP_EXPORT_ALL": "1",
            "PATH_INFO": f"/{scope['path_params']['tail']}",
            "QUERY_STRING": scope["query_string"].decode(),
            "REQUEST_METHOD": scope["method"],
            "CONTENT_TYPE": headers.get("content-type", ""),
            "REMOTE_ADDR": "127.0.0.1",
            "FORGEHAND_RULES": json.dumps(rules),
            "GIT_CONFIG_COUNT": str(len(settings)),
        }
        for n, (name, value) in enumerate(settings.items()):
            environ |= {f"GIT_CONFIG_KEY_{n}": name, f"GIT_CONFIG_VALUE_{n}": value}
        passed = {"content-encoding": "HTTP_CONTENT_ENCODING", "git-protocol": "GIT_PROTOCOL"}
        passed["content-length"] = "CONTENT_LENGTH"
        environ |= {passed[name]: headers[name] for name in passed if name in headers}
        return environ | ({"REMOTE_USER": person.login} if person else {})

    async def _receive_pack(self, backend: Backend, repo: Repository, person: Account | None, send: Send) -> None:
        """Hold the answer until the push took effect, so that the next reader sees it."""
        held: list[Message] = []

        async def hold(message: Message) -> None:
            held.append(message)

        async with repo.pushes:
            before = gitstore.refs(repo.path)
            await backend.run(hold)
            after = gitstore.refs(repo.path)
            assert person
            old, new = ({f"refs/{name}": sha for name, sha in each.items()} for each in (before, after))
            self._desk.actions.refs_changed(repo, old, new, person)
        for message in held:
            await send(message)


def _service(scope: Scope) -> str:
    tail, query = scope["path_params"]["tail"], scope["query_string"].decode()
    service = tail if tail in SERVICES else query.removeprefix("service=") if tail == "info/refs" else ""
    if service not in SERVICES or scope["method"] != ("GET" if tail == "info/refs" else "POST"):
        raise Refusal(403 if tail == "info/refs" else 404, "Please upgrade your git client.")
    return service


def password(header: str | None) -> str | None:
    """Read the password; GitHub wants Basic for git and ignores the user name."""
    scheme, _, value = (header or "").partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        return base64.b64decode(value, validate=True).decode().partition(":")[2]
    except ValueError:
        return ""


def _in_git_words(refusal: Refusal, repo: Repository, bot: Account) -> Refusal:
    if refusal.status == 404:
        return Refusal(404, "Repository not found.")
    if repo.archived:
        return Refusal(403, "This repository was archived so it is read-only.")
    return Refusal(403, f"Permission to {repo.full_name}.git denied to {bot.login}.")


class Backend:
    def __init__(self, environ: dict[str, str], receive: Receive) -> None:
        self._environ = environ
        self._receive = receive

    async def run(self, send: Send) -> None:
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            "git", "http-backend", env=self._environ, stdin=pipe, stdout=pipe, stderr=asyncio.subprocess.DEVNULL
        )
        assert process.stdin
        assert process.stdout
        feeding = asyncio.create_task(self._feed(process.stdin))
        try:
            await self._answer(process.stdout, send)
        finally:
            feeding.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await feeding
            with contextlib.suppress(ProcessLookupError):
                if process.returncode is None and not process.stdout.at_eof():
                    process.kill()
            await process.wait()

    async def _feed(self, stdin: asyncio.StreamWriter) -> None:
        """Pass on the request's body; git may stop reading before its end."""
        more = True
        try:
            while more:
                message = await self._receive()
                if message["type"] == "http.disconnect":
                    break
                stdin.write(message.get("body", b""))
                await stdin.drain()
                more = message.get("more_body", False)
        except (BrokenPipeError, ConnectionResetError):
            pass
        finally:
            stdin.close()

    async def _answer(self, stdout: asyncio.StreamReader, send: Send) -> None:
        status, headers = 200, []
        while line := (await stdout.readline()).strip():
            name, _, value = line.decode("latin-1").partition(": ")
            if name.lower() == "status":
                status = int(value.split(" ")[0])
            else:
                headers.append((name.lower().encode(), value.encode("latin-1")))
        await send({"type": "http.response.start", "status": status, "headers": headers})
        while chunk := await stdout.read(CHUNK):
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})
