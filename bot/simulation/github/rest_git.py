"""Routes of git's own objects: commits that GitHub signs, trees, and refs that move without force."""

from __future__ import annotations

import asyncio
import base64
from fnmatch import fnmatchcase

from starlette.responses import Response

from bot.simulation.github import auth, gitstore, payloads, pull_payloads
from bot.simulation.github.auth import Refusal
from bot.simulation.github.payloads import Json
from bot.simulation.github.rest import Ask, answer, of_repositories
from bot.simulation.github.state import Protection, Repository

WRITE = "contents:write"
OWN_WORDS = ("author", "committer", "signature")
"""With any of these fields, GitHub does not sign the commit."""
SIGNATURE = "gpgsig -----BEGIN PGP SIGNATURE-----\n \n c3RhbmQtaW4=\n -----END PGP SIGNATURE-----"


def ref_payload(ask: Ask, repo: Repository, name: str, sha: str) -> Json:
    url = f"{payloads.repo_url(ask.state, repo)}/git"
    target = {"type": "commit", "sha": sha, "url": f"{url}/commits/{sha}"}
    return {"ref": name, "node_id": payloads.node_id("Ref", name), "url": f"{url}/{name}", "object": target}


async def create_commit(ask: Ask) -> Response:
    repo = ask.repo(WRITE)
    message, tree, parents = ask.body.get("message"), str(ask.body.get("tree") or ""), ask.body.get("parents") or []
    if not isinstance(message, str) or not message:
        raise Refusal(422, 'Invalid request.\n\n"message" wasn\'t supplied.')
    if not repo.reuses_trees and tree not in repo.made_trees:
        raise Refusal(422, "Tree SHA does not exist")
    sha = await asyncio.to_thread(_write, ask, repo, tree, [str(one) for one in parents])
    if repo.signs and not set(OWN_WORDS) & ask.body.keys():
        repo.verified.add(sha)
    ask.state.touch()
    found = await asyncio.to_thread(pull_payloads.commit, ask.state, repo, sha)
    inner = found["commit"]
    own = {name: found[name] for name in ("sha", "node_id", "html_url", "parents")}
    return answer(inner | own | {"url": inner["url"]}, 201)


def _write(ask: Ask, repo: Repository, tree: str, parents: list[str]) -> str:
    if gitstore.resolve(repo.path, tree, "tree") != tree:
        raise Refusal(422, "Tree SHA does not exist")
    for parent in parents:
        if gitstore.resolve(repo.path, parent) != parent:
            raise Refusal(422, "Parent SHA does not exist or is not a commit object")
    return _signed(ask, repo, tree, parents, str(ask.body["message"]), signs=repo.signs)


def _signed(ask: Ask, repo: Repository, tree: str, parents: list[str], message: str, *, signs: bool) -> str:
    bot, when = ask.actor, f"{int(ask.state.clock())} +0000"
    lines = [f"tree {tree}", *(f"parent {one}" for one in parents)]
    lines += [f"author {bot.login} <{bot.id}+{bot.login}@users.noreply.github.com> {when}"]
    lines += [f"committer GitHub <noreply@github.com> {when}", *([SIGNATURE] if signs else [])]
    return gitstore.write_object(repo.path, "commit", ("\n".join(lines) + f"\n\n{message}").encode())


async def create_tree(ask: Ask) -> Response:
    repo = ask.repo(WRITE)
    sha = await asyncio.to_thread(_tree, repo, str(ask.body.get("base_tree") or ""), ask.body.get("tree") or [])
    repo.made_trees.add(sha)
    return answer({"sha": sha, "url": f"{payloads.repo_url(ask.state, repo)}/git/trees/{sha}", "truncated": False}, 201)


def _tree(repo: Repository, base: str, entries: list[Json]) -> str:
    if base and gitstore.resolve(repo.path, base, "tree") != base:
        raise Refusal(422, "base_tree does not exist")
    known = gitstore.entries(repo.path, base) if base else {}
    for entry in entries:
        path, sha = str(entry["path"]), entry.get("sha")
        if sha is None:
            known.pop(path, None)
        elif entry["mode"] != "160000" and gitstore.git(repo.path, "cat-file", "-t", sha, ok=(0, 128)) != b"blob\n":
            raise Refusal(422, f"tree.sha {sha} is not a valid blob")
        else:
            known[path] = (str(entry["mode"]), str(sha))
    return gitstore.write_tree(repo.path, known)


async def create_ref(ask: Ask) -> Response:
    repo, name = ask.repo(WRITE), str(ask.body.get("ref") or "")
    sha = await _commit(repo, str(ask.body.get("sha") or ""))
    if not name.startswith("refs/") or name.count("/") < 2:
        raise Refusal(422, "Reference name is invalid. It must start with 'refs/' and have at least two slashes.")
    async with repo.pushes:
        if gitstore.ref(repo.path, name):
            raise Refusal(422, "Reference already exists")
        await _move(ask, repo, name, (None, sha))
    return answer(ref_payload(ask, repo, name, sha), 201)


async def update_ref(ask: Ask) -> Response:
    repo, name = ask.repo(WRITE), f"refs/{ask.param('ref')}"
    sha = await _commit(repo, str(ask.body.get("sha") or ""))
    async with repo.pushes:
        old = gitstore.ref(repo.path, name)
        if old is None:
            raise Refusal(422, "Reference does not exist")
        if not ask.body.get("force") and gitstore.merge_base(repo.path, old, sha) != old:
            raise Refusal(422, "Update is not a fast forward")
        await _move(ask, repo, name, (old, sha))
    return answer(ref_payload(ask, repo, name, sha))


async def _commit(repo: Repository, sha: str) -> str:
    if await asyncio.to_thread(gitstore.resolve, repo.path, sha) != sha:
        raise Refusal(422, "Object does not exist")
    return sha


async def _move(ask: Ask, repo: Repository, name: str, move: tuple[str | None, str]) -> None:
    old, new = move
    for rule in repo.protections:
        if fnmatchcase(name.removeprefix("refs/heads/"), rule.pattern) and _breaks(repo, rule, new):
            raise Refusal(422, "\n\n".join((f"Repository rule violations found for {name}", *rule.lines)))
    await asyncio.to_thread(gitstore.set_ref, repo.path, name, new)
    ask.desk.actions.refs_changed(repo, {name: old} if old else {}, {name: new}, ask.actor)


def _breaks(repo: Repository, rule: Protection, new: str) -> bool:
    if not rule.only:
        return True
    span = (new, "--not", "--branches")
    if rule.only == "linear":
        return bool(gitstore.git(repo.path, "rev-list", "--merges", *span))
    return not set(gitstore.git(repo.path, "rev-list", *span).decode().split()) <= repo.verified


async def commit_on_branch(ask: Ask, given: Json) -> Json:
    """Make GraphQL's commit of whole files on an existing branch; it is always signed, and modes are lost."""
    where = given["branch"]
    repo = ask.state.repo(where["repositoryNameWithOwner"])
    token = ask.token()
    if repo is None or not auth.in_scope(token, repo) or not auth.holds(token, "contents", "write"):
        return {"data": None, "errors": [{"message": "Resource not accessible by integration"}]}
    name = f"refs/heads/{where['branchName']}"
    async with repo.pushes:
        old = gitstore.ref(repo.path, name)
        if old is None or old != given["expectedHeadOid"]:
            words = f"Expected branch to point to {given['expectedHeadOid']!r} but it did not. Pull and try again."
            return {"data": None, "errors": [{"message": words}]}
        sha = await asyncio.to_thread(_committed, ask, repo, old, given)
        try:
            await _move(ask, repo, name, (old, sha))
        except Refusal as refusal:
            return {"data": None, "errors": [{"message": str(refusal)}]}
    return {"data": {"createCommitOnBranch": {"commit": {"oid": sha}}}}


def _committed(ask: Ask, repo: Repository, old: str, given: Json) -> str:
    known = gitstore.entries(repo.path, old)
    for one in given["fileChanges"]["deletions"]:
        del known[one["path"]]
    for one in given["fileChanges"]["additions"]:
        blob = gitstore.write_object(repo.path, "blob", base64.b64decode(one["contents"]))
        known[one["path"]] = ("100644", blob)
    message = "\n\n".join(part for part in (given["message"]["headline"], given["message"].get("body")) if part)
    sha = _signed(ask, repo, gitstore.write_tree(repo.path, known), [old], message, signs=True)
    repo.verified.add(sha)
    return sha


async def branch_rules(ask: Ask) -> Response:
    """List the rules of rulesets, without classic branch protection."""
    repo, branch = ask.repo("metadata:read"), ask.param("branch")
    kinds = {"signatures": "required_signatures", "linear": "required_linear_history", "": "update"}
    found = [rule for rule in repo.protections if rule.code == "GH013" and fnmatchcase(branch, rule.pattern)]
    source = {"ruleset_source_type": "Repository", "ruleset_source": repo.full_name}
    return answer([{"type": kinds[rule.only], "ruleset_id": n, **source} for n, rule in enumerate(found, start=1)])


ROUTES = of_repositories(
    ("POST", "/git/commits", create_commit),
    ("POST", "/git/trees", create_tree),
    ("POST", "/git/refs", create_ref),
    ("PATCH", "/git/refs/{ref:path}", update_ref),
    ("GET", "/rules/branches/{branch:path}", branch_rules),
)
