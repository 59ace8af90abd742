"""A running stand-in with one repository, one App and one installation, and real git beside it."""

from __future__ import annotations

import asyncio
import base64
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from bot.simulation.github import SimulatedGitHub
from bot.simulation.github.accounts import App, Installation
from bot.simulation.github.keys import encode
from bot.simulation.github.state import Repository

Json = dict[str, Any]


@dataclass
class Clock:
    now: float = 1_780_000_000.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Scene:
    """A running stand-in with one private repository, one App and one installation."""

    github: SimulatedGitHub
    clock: Clock
    app: App
    repo: Repository
    installation: Installation
    http: httpx.AsyncClient

    def jwt(
        self, *, iat: float = -60, exp: float = 540, key: str | None = None, alg: str = "RS256", iss: Any = None
    ) -> str:
        claims = {"iss": iss or str(self.app.id), "iat": int(self.clock() + iat), "exp": int(self.clock() + exp)}
        head, body = (encode(json.dumps(each).encode()) for each in ({"alg": alg, "typ": "JWT"}, claims))
        private = serialization.load_pem_private_key((key or self.app.private_key_pem).encode(), None)
        assert isinstance(private, RSAPrivateKey)
        signature = private.sign(f"{head}.{body}".encode(), padding.PKCS1v15(), hashes.SHA256())
        return f"{head}.{body}.{encode(signature)}"

    async def call(
        self, method: str, path: str, body: object = None, *, auth: str | None = None, **headers: str
    ) -> httpx.Response:
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if auth:
            sent["Authorization"] = f"Bearer {auth}"
        content = None if body is None else json.dumps(body).encode()
        return await self.http.request(method, path, content=content, headers=sent)

    async def mint(self, **wanted: object) -> str:
        answer = await self.call(
            "POST", f"/app/installations/{self.installation.id}/access_tokens", wanted, auth=self.jwt()
        )
        assert answer.status_code == 201, answer.text
        return str(answer.json()["token"])


async def git(*argv: str, cwd: Path, token: str | None = None, stdin: bytes = b"") -> tuple[int, str, str]:
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(cwd),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "LC_ALL": "C",
        **{f"GIT_{who}_{what}": "t@t" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
    }
    if token:
        secret = base64.b64encode(f"x-access-token:{token}".encode()).decode()
        env |= {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "http.extraHeader"}
        env["GIT_CONFIG_VALUE_0"] = f"Authorization: Basic {secret}"
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec("git", *argv, cwd=cwd, env=env, stdin=pipe, stdout=pipe, stderr=pipe)
    out, err = await asyncio.wait_for(process.communicate(stdin), 30)
    assert process.returncode is not None
    return process.returncode, out.decode(), err.decode()


async def clone(scene: Scene, target: Path, token: str, *options: str) -> tuple[int, str]:
    url = f"{scene.github.url}/{scene.repo.full_name}.git"
    code, _, err = await git("clone", *options, url, str(target), cwd=target.parent, token=token)
    return code, err


async def commit_all(folder: Path, branch: str) -> None:
    for argv in (("checkout", "-q", "-b", branch), ("add", "-A"), ("commit", "-q", "-m", "work")):
        code, _, err = await git(*argv, cwd=folder)
        assert code == 0, err


async def commit_empty(folder: Path, branch: str) -> None:
    await git("checkout", "-q", "-b", branch, cwd=folder)
    code, _, err = await git("commit", "-q", "--allow-empty", "-m", branch, cwd=folder)
    assert code == 0, err


@dataclass
class Received:
    headers: dict[str, str]
    body: bytes

    @property
    def payload(self) -> Json:
        found: Json = json.loads(self.body)
        return found


class Receiver:
    """A small webhook endpoint that remembers what it got."""

    def __init__(self) -> None:
        self.got: list[Received] = []
        self.status = 202

    async def __call__(self, request: Request) -> Response:
        self.got.append(Received(dict(request.headers), await request.body()))
        return PlainTextResponse("ok", self.status)

    def events(self) -> list[str]:
        return [f"{each.headers['x-github-event']}.{each.payload.get('action', '')}" for each in self.got]
