"""The real package clients, with the configuration that we write, against registries that demand a credential."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from bot.simulation.registries import archives
from bot.simulation.registries.shelf import Shelf
from tests.world.package_clients import PackageWorkplace, has
from tests.world.package_gateway import SECRET, PackageRig, rigged

POM = """
<project><modelVersion>4.0.0</modelVersion><groupId>x</groupId><artifactId>x</artifactId><version>1</version>
<packaging>pom</packaging><build><extensions><extension><groupId>com.acme</groupId><artifactId>pay</artifactId>
<version>1.2.0</version></extension></extensions></build></project>
"""


def npm(own: Shelf, public: Shelf) -> None:
    public.put(archives.npm("left-padding", "1.0.0"))
    public.put(archives.npm("@acme/pay", "9.9.0", says="a stranger's"))
    own.put(archives.npm("@acme/pay", "1.2.0", requires={"left-padding": "^1.0.0"}))


def pypi(own: Shelf, public: Shelf) -> None:
    public.put(archives.wheel("openlib", "1.0"))
    public.put(archives.wheel("acme-pay", "9.9", says="a stranger's"))
    own.put(archives.wheel("acme-pay", "1.2"))


def cargo(own: Shelf, public: Shelf) -> None:
    own.put(archives.crate("acme-pay", "1.2.0"))


def go(own: Shelf, public: Shelf) -> None:
    own.put(archives.module("git.acme.example/pay", "v1.2.0"))
    public.put(archives.module("git.acme.example/pay", "v1.9.0", says="a stranger's"))


def maven(own: Shelf, public: Shelf) -> None:
    own.put(archives.jar("com.acme", "pay", "1.2.0"))
    public.put(archives.jar("org.codehaus.plexus", "plexus-utils", "1.1"))


@dataclass(frozen=True)
class Client:
    name: str
    kind: str
    scope: str
    fill: Callable[[Shelf, Shelf], None]
    command: str
    says: str
    package: tuple[str, str, str]
    """What the page shows: registry, name, version."""
    files: dict[str, str] = field(default_factory=dict)
    program: str = ""
    """Where this is set, the client may be missing on this machine."""


INSTALLED = "python -c 'import acme_pay, openlib; print(acme_pay.SAYS)'"
CLIENTS = [
    Client(
        "npm",
        "npm",
        "@acme",
        npm,
        'npm ci --cache $HOME/npm && node -p \'require("@acme/pay") + require("left-padding")\'',
        "@acme/payleft-padding",
        ("acme", "@acme/pay", "1.2.0"),
    ),
    Client(
        "pip",
        "pypi",
        "acme-*",
        pypi,
        f"python -m pip install -q --target got acme-pay openlib && cd got && {INSTALLED}",
        "acme-pay",
        ("acme", "acme-pay", "1.2"),
    ),
    Client(
        "uv",
        "pypi",
        "acme-*",
        pypi,
        f"uv pip install -q --target got acme-pay openlib && cd got && {INSTALLED}",
        "acme-pay",
        ("acme", "acme-pay", "1.2"),
    ),
    Client(
        "cargo",
        "cargo",
        "",
        cargo,
        "cargo fetch && grep -q 'acme-pay' Cargo.lock && cat $CARGO_HOME/registry/src/*/acme-pay-1.2.0/src/lib.rs",
        'SAYS: &str = "acme-pay"',
        ("acme", "acme-pay", "1.2.0"),
        {"src/lib.rs": "", "Cargo.toml": '[package]\nname = "x"\nversion = "0.1.0"\nedition = "2021"\n'},
        "cargo",
    ),
    Client(
        "go",
        "go",
        "git.acme.example",
        go,
        "go mod tidy && go list -m all && go run .",
        "git.acme.example/pay",
        ("acme", "git.acme.example/pay", "v1.2.0"),
        {
            "go.mod": "module x\n\ngo 1.19\n\nrequire git.acme.example/pay v1.2.0\n",
            "main.go": 'package main\n\nimport "git.acme.example/pay"\n\nfunc main() { println(pay.Says) }\n',
        },
        "go",
    ),
    Client(
        "maven",
        "maven",
        "com.acme",
        maven,
        "mvn -B -q -Dmaven.repo.local=$HOME/m2 validate; ls $HOME/m2/com/acme/pay/1.2.0",
        "pay-1.2.0.jar",
        ("acme", "com.acme:pay", "1.2.0"),
        {"pom.xml": POM},
        "mvn",
    ),
]


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[PackageRig]:
    async with rigged(tmp_path / "host") as found:
        yield found


@pytest.mark.parametrize("client", CLIENTS, ids=lambda one: one.name)
async def test_a_client_installs_what_is_private_and_the_next_one_from_the_cache(
    rig: PackageRig, tmp_path: Path, client: Client
) -> None:
    if client.program and not has(client.program):
        pytest.skip(f"{client.program} is not on this machine")
    kind = client.kind
    client.fill(rig.registries.shelf(kind), rig.registries.shelf(kind, public=True))
    services = [await rig.stored(kind, "acme", scope=client.scope)]
    if client.scope:
        services.append(await rig.stored(kind, "public", public=True))
    token = await rig.opened(*(one.name for one in services))
    asked = []
    for name in ("first", "second"):
        place = PackageWorkplace(tmp_path / name)
        place.configure(services, f"http://127.0.0.1:{rig.port}/gateway/packages/", token)
        place.put(client.files | _lock(client, rig))
        said = await place.run(client.command)
        assert client.says in said and "a stranger's" not in said
        assert not place.holds(SECRET), "the credential is inside"
        asked.append(len(rig.registries.requests))
    later = [(one.method, one.path) for one in rig.registries.requests[asked[0] :]]
    assert asked[0] > 0 and not later, "the second session has left the machine"
    assert not rig.registries.leaks
    found = await rig.noted(downloads=2)
    assert client.package in {(one.registry, one.name, one.version) for one in found}


def _lock(client: Client, rig: PackageRig) -> dict[str, str]:
    """Write what a repository that knows nothing of us has committed: it names the registries' real addresses."""
    if client.kind == "cargo":
        address = rig.registries.address("cargo")
        manifest = client.files["Cargo.toml"] + '[dependencies]\nacme-pay = { version = "1", registry = "acme" }\n'
        return {"Cargo.toml": manifest, ".cargo/config.toml": f'[registries.acme]\nindex = "sparse+{address}"\n'}
    if client.kind != "npm":
        return {}
    root = {"name": "x", "version": "1.0.0", "dependencies": {"@acme/pay": "^1.0.0"}}
    pay = {
        "version": "1.2.0",
        "resolved": "https://npm.acme.example/@acme/pay/-/pay-1.2.0.tgz",
        "dependencies": {"left-padding": "^1.0.0"},
    }
    left = {"version": "1.0.0", "resolved": "https://registry.npmjs.org/left-padding/-/left-padding-1.0.0.tgz"}
    packages = {"": root, "node_modules/@acme/pay": pay, "node_modules/left-padding": left}
    lock = {"name": "x", "version": "1.0.0", "lockfileVersion": 3, "requires": True, "packages": packages}
    own = "@acme:registry=https://npm.acme.example/\n//npm.acme.example/:_authToken=${NPM_TOKEN}\n"
    return {"package.json": json.dumps(root), "package-lock.json": json.dumps(lock), ".npmrc": own}
