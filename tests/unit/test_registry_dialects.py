"""The dialects of package registries: what passes, whose credential goes where, and what an index may name."""

from __future__ import annotations

import json

import pytest

from bot.registries import DIALECTS
from bot.registries.addresses import BadRegistryAddress
from bot.registries.shape import IndexPage, RegistryDoor, RegistryRefusal, RegistryRequest, Use, out_of_scope
from bot.registries.signing import LinkSigner

SIGNER = LinkSigner(b"key", "acme")
INSIDE = "http://127.0.0.1:9/gateway/packages/acme/"
PASSES = """
npm   GET  @acme%2fpay                          index    https://h.example/p/@acme%2fpay
npm   GET  left-padding/latest                  index    https://h.example/p/left-padding/latest
npm   GET  @acme/pay/-/pay-1.2.0.tgz            package  https://h.example/p/@acme/pay/-/pay-1.2.0.tgz
npm   GET  @acme/pay/-/@acme/pay-1.2.0.tgz      package  https://h.example/p/@acme/pay/-/@acme/pay-1.2.0.tgz
npm   GET  -/npm/v1/keys                        index    https://h.example/p/-/npm/v1/keys
npm   POST -/npm/v1/security/advisories/bulk    advice   https://h.example/p/-/npm/v1/security/advisories/bulk
pypi  GET  simple/acme-pay/                     index    https://h.example/p/simple/acme-pay/
pypi  GET  simple/torch-2.0%2Bx-cp311-x-x.whl   package  https://h.example/p/simple/torch-2.0%2Bx-cp311-x-x.whl
pypi  HEAD simple/ab/acme_pay-1.2.tar.gz        package  https://h.example/p/simple/ab/acme_pay-1.2.tar.gz
cargo GET  index/config.json                    index    https://h.example/p/index/config.json
cargo GET  index/ac/me/acme-pay                 index    https://h.example/p/index/ac/me/acme-pay
go    GET  git.acme.example/!pay/@v/list        index    https://h.example/p/git.acme.example/!pay/@v/list
go    GET  sumdb/sum.golang.org/supported       index    https://h.example/p/sumdb/sum.golang.org/supported
go    GET  git.acme.example/pay/@v/v1.2.0.zip   package  https://h.example/p/git.acme.example/pay/@v/v1.2.0.zip
maven GET  com/acme/pay/maven-metadata.xml.sha1 index    https://h.example/p/com/acme/pay/maven-metadata.xml.sha1
maven GET  com/acme/pay/1.2.0/pay-1.2.0.jar     package  https://h.example/p/com/acme/pay/1.2.0/pay-1.2.0.jar
generic GET a/b?x=%2F                           package  https://h.example/p/a/b?x=%2F
"""
REFUSED = """
npm PUT @acme%2fpay | npm POST @acme%2fpay | npm GET _users | npm GET -/whoami
npm GET -/npm/v1/tokens | npm GET -/npm/v1/user | npm GET -/user/org.couchdb.user:x
npm GET -/package/pay/access | npm DELETE pay/-/pay-1.0.0.tgz/-rev/1 | npm GET a/b/c
npm POST -/npm/v1/security/advisories/bulk?x=1 | npm GET @acme%252fpay | npm GET ../pay
npm GET a%00b | npm GET a?x=1 | pypi GET backup/all-1.0.tar.gz | pypi POST simple/ | pypi GET admin/
pypi GET simple/../admin/ | pypi GET legacy/ | pypi GET simple/a/b | pypi GET simple
cargo PUT index/api/v1/crates/new | cargo GET api/v1/me | cargo GET index/../api
cargo GET -/crate/x/00/0/a/1.0.0/download | go GET git.acme.example/pay
go GET git.acme.example/pay/@v/v1.2.0.exe | go POST a/@v/list | go GET sumdb/a/other
maven PUT com/acme/pay/1/pay-1.jar | maven GET com/acme/ | maven GET service/rest/v1/users/admin
maven GET ../a/b/1/b-1.jar | generic POST a | generic GET a/../b | generic GET a/%2e%2e/b
generic GET a%5cb | generic GET -/at/x/https/other.example/a
"""
ADDRESSES = {"pypi": "https://H.example:443/p/simple", "cargo": "sparse+https://h.example/p/index/"}


def dialect(kind: str):  # type: ignore[no-untyped-def]
    return DIALECTS[kind](ADDRESSES.get(kind, "https://h.example/p"))


def target(kind: str, method: str, path: str):  # type: ignore[no-untyped-def]
    path, _, query = path.partition("?")
    return dialect(kind).target(RegistryRequest(method, path, query), SIGNER)


@pytest.mark.parametrize("row", PASSES.strip().splitlines())
def test_what_clients_read_passes_as_an_address_that_we_wrote(row: str) -> None:
    kind, method, path, use, url = row.split()
    found = target(kind, method, path)
    assert (found.use, found.url, found.with_credential) == (Use(use), url, True)


@pytest.mark.parametrize("row", [one.strip() for line in REFUSED.strip().splitlines() for one in line.split("|")])
def test_what_writes_tells_of_people_or_leaves_the_prefix_is_refused(row: str) -> None:
    with pytest.raises(RegistryRefusal):
        target(*row.split())


def rewritten(kind: str, body: str, content_type: str = "application/json") -> str:
    page = IndexPage(dialect(kind).address + "x/", content_type, INSIDE, SIGNER)
    return str(dialect(kind).rewrite(body.encode(), page).decode())


def test_addresses_in_indexes_lead_to_our_route_and_keep_their_hashes() -> None:
    links = {
        "../pay-1.0.tar.gz#sha256=ab": f"{INSIDE}simple/pay-1.0.tar.gz#sha256=ab",
        "https://h.example/p/f/pay-1.0.tar.gz": "",
        "https://h.example/p/admin/users": "about:invalid",
        "https://user:word@h.example/p/f/pay-1.0.tar.gz": "about:invalid",
        "http://h.example/p/f/pay-1.0.tar.gz": "about:invalid",
        "file:///etc/passwd": "about:invalid",
        "javascript:alert(1)": "about:invalid",
        "https://h.example/p/../secret/pay-1.0.tar.gz": "about:invalid",
        "https://files.example/a/pay-1.0-py3-none-any.whl?token=1#sha256=cd": "",
    }
    for link, expected in links.items():
        place = expected or f"{INSIDE}-/at/"
        assert f'href="{place}' in rewritten("pypi", f'<a href="{link}">x</a>', "text/html; charset=utf-8"), link
        assert f'"url":"{place}' in rewritten("pypi", json.dumps({"files": [{"url": link}]})), link
    based = '<base href="https://files.example/deep/"><a href="pay-1.0.zip" data-x="1">'
    assert "https/files.example/deep/pay-1.0.zip" in rewritten("pypi", based, "text/html")
    words = '{"readme":"say \\"tarball\\": \\"https://a.example/b.tgz\\"","dist":{"integrity":"sha512-x"}}'
    assert rewritten("npm", words) == words, "what stands in a text is no address"
    for bad in (
        "[" * 100_000,
        '{"dist":{"tarball":"\\ud800"}}',
        '{"dist":{"tarball":1}}',
        "\x00",
        '{"tarball":"' + "x" * 9000,
    ):
        assert "h.example" not in rewritten("npm", bad)


def test_an_address_that_could_mean_more_than_it_says_is_no_prefix() -> None:
    for bad in (
        "https://h.example/a/../b",
        'https://h.example/a"b/',
        "https://h.example/%2e%2e/",
        "https://h.ex ample/a/",
    ):
        with pytest.raises(BadRegistryAddress):
            DIALECTS["generic"](bad)
    spaced = DIALECTS["generic"]("https://H.example:443/My%20Project/a+b")
    assert spaced.prefix == "https://h.example/My%20Project/a%2Bb/"
    assert spaced.target(RegistryRequest("GET", "x%20y"), SIGNER).url == f"{spaced.prefix}x%20y"


def test_an_index_with_a_flood_of_links_is_refused() -> None:
    with pytest.raises(RegistryRefusal):
        rewritten("npm", '{"tarball":""}' * 100_001)


def test_only_what_an_index_named_is_reachable_elsewhere_and_without_the_credential() -> None:
    page = rewritten(
        "pypi", '<a href="https://files.example/a%2Bb/pay-1.0-py3-none-any.whl?t=1#sha256=cd">', "text/html"
    )
    signed, _, query = page.partition(INSIDE)[2].partition("#")[0].partition("?")
    found = dialect("pypi").target(RegistryRequest("GET", signed, query), SIGNER)
    assert found.url == "https://files.example/a%2Bb/pay-1.0-py3-none-any.whl?t=1"
    assert (found.with_credential, found.package.name, found.package.version) == (False, "pay", "1.0")
    for path, key in ((signed.replace("files", "other"), SIGNER), (signed, LinkSigner(b"key", "another registry"))):
        with pytest.raises(RegistryRefusal):
            dialect("pypi").target(RegistryRequest("GET", path, query), key)
    with pytest.raises(RegistryRefusal):
        dialect("pypi").target(RegistryRequest("GET", signed, "t=2"), SIGNER)


def test_cargo_fills_the_template_on_the_host() -> None:
    config = rewritten("cargo", '{"dl":"https://crates.example/{prefix}/{crate}-{version}","api":"https://h.example"}')
    place = json.loads(config)["dl"].removeprefix(INSIDE)
    ask = place.format_map({"sha256-checksum": "a" * 64, "crate": "acme-pay", "version": "1.2.0"})
    found = dialect("cargo").target(RegistryRequest("GET", ask), SIGNER)
    assert (found.url, found.with_credential) == ("https://crates.example/ac/me/acme-pay-1.2.0", False)
    assert "api" not in json.loads(config)
    for bad in ("[]", "[" * 60_000, '{"dl":"file:///x"}', '{"dl":"https://u:p@h.example/"}'):
        with pytest.raises(RegistryRefusal):
            ask = json.loads(rewritten("cargo", bad))["dl"].removeprefix(INSIDE)
            ask = ask.format_map({"sha256-checksum": "a" * 64, "crate": "x", "version": "1.2.0"})
            dialect("cargo").target(RegistryRequest("GET", ask), SIGNER)


@pytest.mark.parametrize(
    ("kind", "scope", "own", "other"),
    [
        ("npm", "@acme", "@acme/pay", "@acme-evil/pay"),
        ("pypi", "Acme_*", "acme-pay", "acmepay"),
        ("go", "git.acme.example/pay", "git.acme.example/pay/v2", "git.acme.example/payroll"),
        ("maven", "com.acme", "com.acme.pay", "com.acmeevil"),
    ],
)
def test_one_registry_answers_for_a_private_name(kind: str, scope: str, own: str, other: str) -> None:
    private = RegistryDoor("private", INSIDE, "token", dialect(kind), (scope,))
    public = RegistryDoor("public", INSIDE, "token", dialect(kind))
    for subject, silent in ((own, public), (other, private)):
        answering = public if silent is private else private
        assert out_of_scope(subject, silent, [private, public])
        assert not out_of_scope(subject, answering, [private, public])
