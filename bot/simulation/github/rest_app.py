"""Routes of the App itself: its installations and tokens, its hook's delivery log, rate limits, users."""

from __future__ import annotations

import json

from starlette.responses import Response

from bot.simulation.github import auth, payloads
from bot.simulation.github.accounts import App, Delivery, Installation
from bot.simulation.github.auth import Refusal
from bot.simulation.github.limits import owner
from bot.simulation.github.payloads import Json, stamp
from bot.simulation.github.registry import from_manifest
from bot.simulation.github.rest import Ask, Table, answer, link, nothing, page_of, paged

KEPT_SECONDS = 3 * 24 * 3600.0


async def get_app(ask: Ask) -> Response:
    return answer(payloads.app(ask.state, ask.app()))


def _installations(app: App, ask: Ask) -> list[Installation]:
    return [each for each in ask.state.installations.values() if each.app is app and not each.deleted]


async def list_installations(ask: Ask) -> Response:
    return paged(ask, _installations(ask.app(), ask), lambda each: payloads.installation(ask.state, each))


def _installation(ask: Ask) -> Installation:
    found = ask.state.installations.get(ask.number("installation_id"))
    if found is None or found.deleted or found.app is not ask.app():
        raise Refusal(404, "Not Found")
    return found


async def get_installation(ask: Ask) -> Response:
    return answer(payloads.installation(ask.state, _installation(ask)))


async def create_token(ask: Ask) -> Response:
    ask.app()
    forms = {"enabled": "stateless", "disabled": "classic"}
    form = forms.get(ask.request.headers.get("x-github-stateless-s2s-token", ""))
    token = auth.mint(ask.state, ask.desk.tokens, _installation(ask), ask.body, form)
    repos = token.installation.repos
    chosen = token.repository_ids
    body: Json = {
        "token": token.value,
        "expires_at": stamp(token.expires_at),
        "permissions": token.permissions,
        "repository_selection": token.installation.selection if chosen is None else "selected",
    }
    if chosen is not None:
        body["repositories"] = [payloads.repository(ask.state, repo) for repo in repos if repo.id in chosen]
    return answer(body, 201)


async def revoke_token(ask: Ask) -> Response:
    ask.token().revoked = True
    return nothing()


async def list_repositories(ask: Ask) -> Response:
    token = ask.token()
    repos = [repo for repo in token.installation.repos if auth.in_scope(token, repo) and not repo.deleted]
    return paged(ask, repos, lambda each: payloads.repository(ask.state, each), wrap="repositories")


async def installation_of_repo(ask: Ask) -> Response:
    name = f"{ask.param('owner')}/{ask.param('repo')}"
    repo = ask.state.repo(name)
    for each in _installations(ask.app(), ask):
        if repo in each.repos:
            return answer(payloads.installation(ask.state, each))
    raise Refusal(404, "Not Found")


async def installation_of_account(ask: Ask) -> Response:
    for each in _installations(ask.app(), ask):
        if each.account.login.lower() == ask.param("login").lower():
            return answer(payloads.installation(ask.state, each))
    raise Refusal(404, "Not Found")


async def get_hook(ask: Ask) -> Response:
    app = ask.app()
    return answer({"content_type": "json", "insecure_ssl": "0", "secret": "********", "url": app.webhook_url or ""})


def _item(delivery: Delivery) -> Json:
    return {
        "id": delivery.id,
        "guid": delivery.guid,
        "delivered_at": stamp(delivery.delivered_at),
        "redelivery": delivery.redelivery,
        "duration": delivery.duration,
        "status": delivery.status,
        "status_code": delivery.status_code,
        "event": delivery.event,
        "action": delivery.action,
        "installation_id": delivery.installation_id,
        "repository_id": delivery.repository_id,
        "throttled_at": None,
    }


def _kept(ask: Ask) -> list[Delivery]:
    """Return the deliveries of the last three days, as far back as GitHub's log goes."""
    oldest = ask.state.clock() - KEPT_SECONDS
    return [each for each in ask.app().deliveries if each.delivered_at >= oldest]


async def list_deliveries(ask: Ask) -> Response:
    """List finished attempts, newest first; the cursor is the id before the page."""
    found = [each for each in reversed(_kept(ask)) if each.status != "pending"]
    wanted = ask.query("status")
    if wanted:
        found = [each for each in found if (each.status == "OK") == (wanted == "success")]
    cursor = ask.query("cursor").removeprefix("v1_")
    if cursor:
        found = [each for each in found if each.id < int(cursor)] if cursor.isdecimal() else []
    _, size = page_of(ask)
    answered = answer([_item(each) for each in found[:size]])
    if len(found) > size:
        answered.headers["Link"] = link(ask, "next", cursor=f"v1_{found[size - 1].id}", per_page=size)
    return answered


def _delivery(ask: Ask) -> Delivery:
    for each in _kept(ask):
        if each.id == ask.number("delivery_id"):
            return each
    raise Refusal(404, "Not Found")


async def get_delivery(ask: Ask) -> Response:
    delivery = _delivery(ask)
    request = {"headers": delivery.headers, "payload": json.loads(delivery.body)}
    response = {"headers": delivery.response_headers, "payload": delivery.response_body}
    url = ask.app().webhook_url
    return answer(_item(delivery) | {"url": url, "request": request, "response": response})


async def redeliver(ask: Ask) -> Response:
    ask.desk.actions.events.webhooks.redeliver(ask.app(), _delivery(ask))
    return answer({}, 202)


async def get_rate_limit(ask: Ask) -> Response:
    headers = ask.desk.limits.take(ask.credential, cost=0)
    names = ("limit", "remaining", "used", "reset")
    core = {name: int(headers[f"X-RateLimit-{name.title()}"]) for name in names}
    return answer({"resources": {"core": core, "search": core | {"limit": 30, "remaining": 30, "used": 0}}})


async def get_user(ask: Ask) -> Response:
    account = ask.state.account(ask.param("login"))
    if account is None:
        raise Refusal(404, "Not Found")
    return answer(payloads.public_user(ask.state, account))


async def get_myself(ask: Ask) -> Response:
    if ask.credential.user is None:
        if ask.credential.kind == "none":
            raise Refusal(401, "Requires authentication")
        raise Refusal(403, auth.NOT_ACCESSIBLE)
    return answer(payloads.public_user(ask.state, ask.credential.user))


async def get_membership(ask: Ask) -> Response:
    """Tell whether somebody is an owner of the organisation, which decides who may change settings."""
    token = ask.token()
    if not auth.holds(token, "members", "read"):
        raise Refusal(403, auth.NOT_ACCESSIBLE)
    org, person = ask.state.account(ask.param("org")), ask.state.account(ask.param("login"))
    if org is None or person is None or person.id not in org.members:
        raise Refusal(404, "Not Found")
    url = f"{ask.state.api_url}/orgs/{org.login}"
    shown = {"user": payloads.user(ask.state, person), "organization": {"login": org.login, "id": org.id, "url": url}}
    return answer(
        {"url": f"{url}/memberships/{person.login}", "state": "active", "role": org.members[person.id], **shown}
    )


async def convert_manifest(ask: Ask) -> Response:
    """Convert each code once, without a credential."""
    offered = ask.state.manifests.pop(ask.param("code"), None)
    if offered is None:
        raise Refusal(404, "Not Found")
    app = from_manifest(ask.state, *offered)
    hidden = {"client_secret": app.client_secret, "webhook_secret": app.webhook_secret, "pem": app.private_key_pem}
    return answer(payloads.app(ask.state, app) | hidden, 201)


async def get_zen(ask: Ask) -> Response:
    return Response(f"Keep it logically awesome, {owner(ask.credential)}.", media_type="text/plain")


ROUTES: Table = (
    ("GET", "/app", get_app),
    ("GET", "/app/installations", list_installations),
    ("GET", "/app/installations/{installation_id}", get_installation),
    ("POST", "/app/installations/{installation_id}/access_tokens", create_token),
    ("GET", "/app/hook/config", get_hook),
    ("GET", "/app/hook/deliveries", list_deliveries),
    ("GET", "/app/hook/deliveries/{delivery_id}", get_delivery),
    ("POST", "/app/hook/deliveries/{delivery_id}/attempts", redeliver),
    ("DELETE", "/installation/token", revoke_token),
    ("GET", "/installation/repositories", list_repositories),
    ("GET", "/repos/{owner}/{repo}/installation", installation_of_repo),
    ("GET", "/users/{login}/installation", installation_of_account),
    ("GET", "/orgs/{login}/installation", installation_of_account),
    ("GET", "/orgs/{org}/memberships/{login}", get_membership),
    ("GET", "/user", get_myself),
    ("GET", "/users/{login}", get_user),
    ("GET", "/rate_limit", get_rate_limit),
    ("GET", "/zen", get_zen),
    ("POST", "/app-manifests/{code}/conversions", convert_manifest),
)
