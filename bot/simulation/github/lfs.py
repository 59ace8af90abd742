"""Git LFS: GitHub's batch API and locks, and the other host that keeps the contents behind signed addresses."""

from __future__ import annotations

import hashlib
import hmac
import json
import re

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from bot.simulation.github import auth
from bot.simulation.github.auth import Credential, Refusal
from bot.simulation.github.git_http import password
from bot.simulation.github.payloads import Json
from bot.simulation.github.rest import Desk
from bot.simulation.github.state import Repository, State

MEDIA_TYPE = "application/vnd.git-lfs+json"
MOST_OBJECTS = 100
MOST_BYTES = 2 << 30
_KEY = b"the key of the host that keeps large files"
_OID = re.compile(r"[0-9a-f]{64}")


class LfsApi:
    """The endpoint `/{owner}/{repo}.git/info/lfs/{tail}`."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def answer(self, request: Request) -> Response:
        try:
            repo = self._find(request)
            if request.path_params["tail"] == "verify":
                return await self._verify(request, repo)
            body = await _body(request)
            if request.path_params["tail"] == "objects/batch":
                return self._batch(request, repo, body)
            if request.path_params["tail"] == "locks/verify":
                return self._locks(request, repo)
            raise Refusal(404, "Not Found")
        except Refusal as refusal:
            return JSONResponse({"message": str(refusal)}, refusal.status, refusal.headers, MEDIA_TYPE)

    def _find(self, request: Request) -> Repository:
        repo = self._desk.state.repo(f"{request.path_params['owner']}/{request.path_params['repo']}")
        if repo is None or repo.deleted:
            raise Refusal(404, "Not Found")
        return repo

    def _admit(self, request: Request, repo: Repository, need: str) -> None:
        token = password(request.headers.get("authorization"))
        if token is None:
            if need.endswith(":write") or repo.private:
                asks = {"LFS-Authenticate": 'Basic realm="GitHub"'}
                raise Refusal(401, "Requires authentication", headers=asks)
            return
        credential = Credential("installation", token=auth.live_token(self._desk.state, token))
        request.scope["forgehand.credential"] = credential.kind
        auth.require(credential, repo, need)

    def _batch(self, request: Request, repo: Repository, body: Json) -> Response:
        operation, objects = body.get("operation"), body.get("objects")
        if operation not in ("download", "upload") or not isinstance(objects, list):
            raise Refusal(422, "The operation or the objects are missing")
        self._admit(request, repo, "contents:write" if operation == "upload" else "contents:read")
        if operation in repo.large.refusals:
            raise Refusal(*repo.large.refusals[operation])
        if body.get("hash_algo", "sha256") != "sha256":
            raise Refusal(409, "Unsupported hash algorithm")
        if len(objects) > MOST_OBJECTS:
            raise Refusal(413, "Too many objects")
        answer = self._to_upload if operation == "upload" else self._to_download
        found = [answer(repo, str(one.get("oid")), one.get("size")) for one in objects]
        return JSONResponse({"transfer": "basic", "objects": found, "hash_algo": "sha256"}, media_type=MEDIA_TYPE)

    def _to_download(self, repo: Repository, oid: str, size: object) -> Json:
        content = repo.large.held.get(oid)
        if content is None or not _OID.fullmatch(oid):
            words = "Object does not exist on the server or you don't have permissions to access it"
            return {"oid": oid, "size": size, "error": {"code": 404, "message": words}}
        if len(content) != size and not repo.large.states_size:
            return {"oid": oid, "size": size, "error": {"code": 422, "message": "Size does not match"}}
        return {"oid": oid, "size": len(content), "actions": {"download": self._action(repo, oid, {})}}

    def _to_upload(self, repo: Repository, oid: str, size: object) -> Json:
        if not _OID.fullmatch(oid) or not isinstance(size, int) or size < 0:
            return {"oid": oid, "size": size, "error": {"code": 422, "message": "Invalid object"}}
        if size > MOST_BYTES:
            words = f"Size must be less than or equal to {MOST_BYTES}"
            return {"oid": oid, "size": size, "error": {"code": 422, "message": words}}
        if oid in repo.large.held:
            return {"oid": oid, "size": size}
        url = f"{self._desk.state.url}/{repo.full_name}.git/info/lfs/verify"
        verify = {"href": url, "header": {"Authorization": f"RemoteAuth {_signature(repo, oid, 0)}"}}
        return {
            "oid": oid,
            "size": size,
            "actions": {"upload": self._action(repo, oid, {"X-Amz-Content-Sha256": oid}), "verify": verify},
        }

    def _action(self, repo: Repository, oid: str, header: dict[str, str]) -> Json:
        until = int(self._desk.state.clock() + repo.large.lifetime)
        if repo.large.ended:
            repo.large.ended, until = repo.large.ended - 1, int(self._desk.state.clock()) - 1
        signed = f"X-Amz-Expires={until}&X-Amz-Signature={_signature(repo, oid, until)}"
        url = f"{self._desk.state.storage_url}/{repo.id}/{oid}?{signed}"
        return {"href": url, "header": header, "expires_in": int(repo.large.lifetime)}

    async def _verify(self, request: Request, repo: Repository) -> Response:
        body = await _body(request)
        oid = str(body.get("oid"))
        given = request.headers.get("authorization", "")
        if not hmac.compare_digest(given.encode(), f"RemoteAuth {_signature(repo, oid, 0)}".encode()):
            raise Refusal(401, "Bad credentials")
        content = repo.large.arrived.get(oid)
        if content is None or len(content) != body.get("size"):
            raise Refusal(404 if content is None else 422, "The object did not arrive")
        repo.large.held[oid] = repo.large.arrived.pop(oid)
        self._desk.state.touch()
        return JSONResponse({}, media_type=MEDIA_TYPE)

    def _locks(self, request: Request, repo: Repository) -> Response:
        self._admit(request, repo, "contents:write")
        theirs = [
            {"id": str(number), "path": path, "locked_at": "2026-01-01T00:00:00Z", "owner": {"name": owner}}
            for number, (path, owner) in enumerate(repo.large.locks, 1)
        ]
        return JSONResponse({"ours": [], "theirs": theirs, "next_cursor": ""}, media_type=MEDIA_TYPE)


async def _body(request: Request) -> Json:
    if not request.headers.get("accept", "").startswith(MEDIA_TYPE):
        raise Refusal(406, f"The Accept header must be {MEDIA_TYPE}")
    if not request.headers.get("content-type", "").startswith(MEDIA_TYPE):
        raise Refusal(415, f"The Content-Type header must be {MEDIA_TYPE}")
    try:
        found = json.loads(await request.body())
    except ValueError:
        found = None
    if request.method != "POST" or not isinstance(found, dict):
        raise Refusal(422, "Problems parsing JSON")
    return found


def _signature(repo: Repository, oid: str, until: int) -> str:
    return hmac.new(_KEY, f"{repo.id}.{oid}.{until}".encode(), hashlib.sha256).hexdigest()


def storage(state: State) -> Starlette:
    """Make the other host. It takes signed addresses, and refuses a request with another credential beside them."""

    async def content(request: Request) -> Response:
        repo, oid = state.repos[request.path_params["repo"]], request.path_params["oid"]
        until = request.query_params.get("X-Amz-Expires", "")
        signature = _signature(repo, oid, int(until) if until.isdecimal() else -1)
        if "authorization" in request.headers:
            return Response("<Code>InvalidArgument</Code>Only one auth mechanism allowed", 400)
        if not hmac.compare_digest(signature, request.query_params.get("X-Amz-Signature", "")):
            return Response("<Code>SignatureDoesNotMatch</Code>", 403)
        if int(until) <= state.clock():
            return Response("<Code>AccessDenied</Code>Request has expired", 403)
        if request.method == "GET":
            return Response(repo.large.held[oid], media_type="application/octet-stream")
        if request.headers.get("x-amz-content-sha256") != oid or "content-length" not in request.headers:
            return Response("<Code>MissingContentLength</Code>", 411)
        sent = await request.body()
        if hashlib.sha256(sent).hexdigest() != oid:
            return Response("<Code>XAmzContentSHA256Mismatch</Code>", 400)
        repo.large.arrived[oid] = sent
        return Response()

    return Starlette(routes=[Route("/{repo:int}/{oid}", content, methods=["GET", "PUT"])])
