"""Single failures of the wire, as httpx tells of them: whether GitHub may have acted decides what is sent again.

respx answers in the place of the network. E2B's SDK has a transport of its own, which respx does not see: its single
failures stay with its stand-in.
"""

from __future__ import annotations

import httpx
import pytest
import respx

from bot.errors import GitHubUnavailable
from bot.github.api import Api, ApiCall

URL = "https://api.github.test"
UNSENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
PERHAPS_SENT = (httpx.ReadTimeout, httpx.WriteTimeout, httpx.ReadError, httpx.WriteError, httpx.RemoteProtocolError)
GET, POST = (
    ApiCall("GET", "/repos/octo/calc"),
    ApiCall("POST", "/repos/octo/calc/issues/1/comments", body={"body": "x"}),
)
MARKED = ApiCall("POST", "/repos/octo/calc/check-runs", body={}, repeatable=True)
ONCE = ApiCall("PUT", "/repos/octo/calc/lock", once=True)


async def sent(call: ApiCall, *outcomes: type[httpx.TransportError] | int) -> int | str:
    """What comes of it when these are met one after the other; each of them is."""
    api = Api(URL, repeat_after=(0.0, 0.0))
    async with respx.mock(base_url=URL) as github:
        steps = [httpx.Response(one, json={}) if isinstance(one, int) else one("so") for one in outcomes]
        route = github.request(call.method, call.path).mock(side_effect=steps)
        try:
            found: int | str = (await api.send(call, None)).status
        except GitHubUnavailable as error:
            found = str(error)
        finally:
            await api.close()
        assert route.call_count == len(outcomes)
        return found


@pytest.mark.parametrize("error", UNSENT)
@pytest.mark.parametrize("call", [GET, POST, MARKED, ONCE], ids=str)
async def test_what_never_left_is_sent_again(call: ApiCall, error: type[httpx.TransportError]) -> None:
    assert await sent(call, error, error, 201) == 201


@pytest.mark.parametrize("error", PERHAPS_SENT)
async def test_what_may_have_arrived_is_sent_again_only_where_twice_is_once(
    error: type[httpx.TransportError],
) -> None:
    for call in (GET, MARKED):
        assert await sent(call, error, error, 200) == 200
    for call in (POST, ONCE):
        words = f"{call}: GitHub did not answer ({error.__name__})."
        assert await sent(call, error) == words


@pytest.mark.parametrize("error", [*UNSENT, *PERHAPS_SENT])
async def test_after_the_last_try_the_failure_is_named(error: type[httpx.TransportError]) -> None:
    how = "could not be reached" if error in UNSENT else "did not answer"
    words = f"GET /repos/octo/calc: GitHub {how} ({error.__name__})."
    assert await sent(GET, error, error, error) == words


async def test_an_answer_of_five_hundred_counts_as_sent() -> None:
    assert await sent(GET, 502, httpx.ConnectError, 200) == 200
    assert await sent(POST, 502) == f"{POST}: GitHub answered 502."
