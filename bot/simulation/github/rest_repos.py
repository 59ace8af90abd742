"""Routes of a repository: permissions, files, branches, refs and commits."""

from __future__ import annotations

import asyncio
import base64

from starlette.responses import Response

from bot.simulation.github import auth, gitstore, payloads, pull_payloads
from bot.simulation.github.auth import Refusal
from bot.simulation.github.payloads import Json
from bot.simulation.github.rest import Ask, Table, answer, nothing, of_repositories, paged
from bot.simulation.github.rest_git import ref_payload
from bot.simulation.github.state import Repository

INLINE_LIMIT = 1024 * 1024


async def get_repo(ask: Ask) -> Response:
    return answer(payloads.full_repository(ask.state, ask.repo("metadata:read")))


async def get_permission(ask: Ask) -> Response:
    """Return the old four-step `permission` and the true `role_name`; only people are collaborators."""
    repo = ask.repo("metadata:read")
    if not auth.in_scope(ask.credential.token, repo):
        raise Refusal(403, "Must have push access to view collaborator permission.")
    account = ask.state.account(ask.param("login"))
    if account is None:
        raise Refusal(404, "Not Found")
    if account.type != "User":
        raise Refusal(404, f"{account.login} is not a user")
    role = repo.role(account)
    permission = {"maintain": "write", "triage": "read"}.get(role, role)
    person = payloads.user(ask.state, account) | {"role_name": role, "permissions": _flags(role)}
    return answer({"permission": permission, "role_name": role, "user": person})


def _flags(role: str) -> dict[str, bool]:
    names = {"pull": "read", "triage": "triage", "push": "write", "maintain": "maintain", "admin": "admin"}
    order = ("none", "read", "triage", "write", "maintain", "admin")
    return {name: order.index(role) >= order.index(least) for name, least in names.items()}


async def _commit(repo: Repository, name: str) -> str:
    sha = await asyncio.to_thread(gitstore.resolve, repo.path, name)
    if sha is None:
        raise Refusal(404, f"No commit found for the ref {name}" if name else "This repository is empty.")
    return sha


async def get_contents(ask: Ask) -> Response:
    repo = ask.repo("contents:read")
    path = ask.request.path_params.get("path", "").strip("/")
    name = ask.query("ref") or repo.default_branch
    commit = await _commit(repo, name)
    found = await asyncio.to_thread(gitstore.object_at, repo.path, commit, path)
    if found is None:
        raise Refusal(404, "Not Found")
    if found[1] == "tree":
        return answer(await asyncio.to_thread(_folder, ask, repo, found[2], path))
    if found[1] == "commit":
        return answer(_entry(ask, repo, path, found[2]) | {"type": "submodule", "submodule_git_url": None})
    data = await asyncio.to_thread(gitstore.blob, repo.path, found[2])
    if ask.accepts("raw"):
        return Response(data, media_type="application/vnd.github.raw; charset=utf-8")
    return answer(_file(ask, repo, path, found, data))


def _entry(ask: Ask, repo: Repository, path: str, sha: str) -> Json:
    url = f"{payloads.repo_url(ask.state, repo)}/contents/{path}"
    git_url = f"{payloads.repo_url(ask.state, repo)}/git/blobs/{sha}"
    page = f"{ask.state.url}/{repo.full_name}/blob/{path}"
    links = {"self": url, "git": git_url, "html": page}
    named = {"name": path.rpartition("/")[2], "path": path, "sha": sha, "size": 0}
    return named | {"url": url, "git_url": git_url, "html_url": page, "download_url": page, "_links": links}


def _file(ask: Ask, repo: Repository, path: str, found: tuple[str, str, str], data: bytes) -> Json:
    mode, _, sha = found
    whole = _entry(ask, repo, path, sha) | {"size": len(data)}
    if mode == "120000":
        return whole | {"type": "symlink", "target": data.decode("utf-8", "replace")}
    if len(data) > INLINE_LIMIT:
        return whole | {"type": "file", "encoding": "none", "content": ""}
    return whole | {"type": "file", "encoding": "base64", "content": base64.encodebytes(data).decode()}


def _folder(ask: Ask, repo: Repository, tree: str, path: str) -> list[Json]:
    kinds = {"blob": "file", "tree": "dir", "commit": "submodule"}
    found = []
    for line in gitstore.git(repo.path, "ls-tree", "-z", tree).decode("utf-8", "replace").split("\0")[:-1]:
        head, _, name = line.partition("\t")
        _, kind, sha = head.split(" ")
        full = f"{path}/{name}" if path else name
        found.append(_entry(ask, repo, full, sha) | {"type": kinds[kind]})
    return found


async def get_commit(ask: Ask) -> Response:
    repo = ask.repo("contents:read")
    name = ask.param("ref")
    sha = await asyncio.to_thread(gitstore.resolve, repo.path, name)
    if sha is None:
        raise Refusal(422, f"No commit found for SHA: {name}")
    if ask.accepts("sha"):
        return Response(sha, media_type="application/vnd.github.sha")
    found = await asyncio.to_thread(pull_payloads.commit, ask.state, repo, sha)
    if ask.request.url.path.endswith(f"/git/commits/{name}"):
        inner = found["commit"]
        found = (
            inner | {name: found[name] for name in ("sha", "node_id", "html_url", "parents")} | {"url": inner["url"]}
        )
    return answer(found)


async def compare(ask: Ask) -> Response:
    repo = ask.repo("contents:read")
    base_name, dots, head_name = ask.param("basehead").partition("...")
    if not dots:
        raise Refusal(404, "Not Found")
    base, head = await _commit(repo, base_name), await _commit(repo, head_name)
    return answer(await asyncio.to_thread(_compared, ask, repo, base, head))


def _compared(ask: Ask, repo: Repository, base: str, head: str) -> Json:
    path = repo.path
    ahead, behind = gitstore.count(path, base, head), gitstore.count(path, head, base)
    status = {(True, True): "diverged", (True, False): "ahead", (False, True): "behind", (False, False): "identical"}
    start = gitstore.merge_base(path, base, head)
    if start is None:
        raise Refusal(404, "No common ancestor between the two.")
    shas = gitstore.git(path, "rev-list", "--reverse", "--max-count=250", f"{base}..{head}").decode().split()
    url = f"{payloads.repo_url(ask.state, repo)}/compare/{base}...{head}"
    links = dict.fromkeys(("url", "html_url", "permalink_url", "diff_url", "patch_url"), url)
    return links | {
        "base_commit": pull_payloads.commit(ask.state, repo, base),
        "merge_base_commit": pull_payloads.commit(ask.state, repo, start),
        "status": status[bool(ahead), bool(behind)],
        "ahead_by": ahead,
        "behind_by": behind,
        "total_commits": ahead,
        "commits": [pull_payloads.commit(ask.state, repo, sha) for sha in shas],
        "files": pull_payloads.changed_files(ask.state, repo, base, head)[:300],
    }


def _branch(ask: Ask, repo: Repository, name: str, sha: str) -> Json:
    commit = {"sha": sha, "url": f"{payloads.repo_url(ask.state, repo)}/commits/{sha}"}
    return {"name": name, "commit": commit, "protected": is_protected(repo, name)}


def is_protected(repo: Repository, branch: str) -> bool:
    from fnmatch import fnmatchcase

    return any(fnmatchcase(branch, rule.pattern) for rule in repo.protections)


async def list_branches(ask: Ask) -> Response:
    repo = ask.repo("contents:read")
    found = sorted(repo.branches().items())
    return paged(ask, found, lambda each: _branch(ask, repo, *each))


async def get_branch(ask: Ask) -> Response:
    repo = ask.repo("contents:read")
    name = ask.param("branch")
    sha = repo.branch_sha(name)
    if sha is None:
        raise Refusal(404, "Branch not found")
    commit = await asyncio.to_thread(pull_payloads.commit, ask.state, repo, sha)
    url = f"{payloads.repo_url(ask.state, repo)}/branches/{name}"
    links = {"self": url, "html": f"{ask.state.url}/{repo.full_name}/tree/{name}"}
    guard = {"enabled": is_protected(repo, name)}
    whole = _branch(ask, repo, name, sha) | {"commit": commit, "_links": links, "protection": guard}
    return answer(whole | {"protection_url": f"{url}/protection"})


async def get_ref(ask: Ask) -> Response:
    repo = ask.repo("contents:read")
    name = f"refs/{ask.param('ref')}"
    sha = gitstore.ref(repo.path, name) if ".." not in name else None
    if sha is None:
        raise Refusal(404, "Not Found")
    return answer(ref_payload(ask, repo, name, sha))


async def matching_refs(ask: Ask) -> Response:
    repo = ask.repo("contents:read")
    wanted = f"refs/{ask.param('ref')}"
    found = [(f"refs/{name}", sha) for name, sha in sorted(gitstore.refs(repo.path).items())]
    return paged(
        ask, [each for each in found if each[0].startswith(wanted)], lambda each: ref_payload(ask, repo, *each)
    )


async def delete_ref(ask: Ask) -> Response:
    repo = ask.repo("contents:write")
    name = f"refs/{ask.param('ref')}"
    async with repo.pushes:
        before = {name: sha} if (sha := gitstore.ref(repo.path, name)) and ".." not in name else {}
        if not before:
            raise Refusal(422, "Reference does not exist")
        if is_protected(repo, name.removeprefix("refs/heads/")):
            raise Refusal(422, "Cannot delete a protected branch")
        await asyncio.to_thread(gitstore.set_ref, repo.path, name, None)
        ask.desk.actions.refs_changed(repo, before, {}, ask.actor)
    return nothing()


ROUTES = of_repositories(
    ("GET", "", get_repo),
    ("GET", "/collaborators/{login}/permission", get_permission),
    ("GET", "/contents", get_contents),
    ("GET", "/contents/{path:path}", get_contents),
    ("GET", "/branches", list_branches),
    ("GET", "/branches/{branch:path}", get_branch),
    ("GET", "/compare/{basehead:path}", compare),
    ("GET", "/git/commits/{ref}", get_commit),
    ("GET", "/git/ref/{ref:path}", get_ref),
    ("GET", "/git/matching-refs/{ref:path}", matching_refs),
    ("DELETE", "/git/refs/{ref:path}", delete_ref),
)
# a branch name may hold slashes, so this one must stand after every longer path under commits/
LAST: Table = (("GET", "/repos/{owner}/{repo}/commits/{ref:path}", get_commit),)
