"""Both compose files are valid, and the replicas run under the same restrictions as the one service."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from bot import settings
from bot.settings import Secret
from tests.world.settings_read import known, needed

ROOT = Path(__file__).parents[2]
Project = dict[str, Any]
REPLICAS = ("forgehand-1", "forgehand-2", "forgehand-3")
OWN = {"volumes", "environment", "ports", "healthcheck", "secrets", "networks", "depends_on"}
"""What may differ between a replica and the service of compose.yaml."""


def load(name: str) -> Project:
    project: Project = yaml.safe_load((ROOT / name).read_text(encoding="utf-8"))
    return project


@pytest.fixture(scope="module")
def scale() -> Project:
    return load("compose.scale.yaml")


def schema() -> Any:
    """The schema of the Compose specification, as check-jsonschema brings it."""
    file = files("check_jsonschema") / "builtin_schemas/vendor/compose-spec.json"
    return json.loads(file.read_text(encoding="utf-8"))


def problems(project: Project) -> list[str]:
    checks = (invalid, unlike_the_one, unsafe, unconnected, missing)
    return [words for check in checks for words in check(project)]


def invalid(project: Project) -> Iterator[str]:
    rules = schema()
    judge = jsonschema.validators.validator_for(rules)(rules)
    yield from (f"schema: {one.message}" for one in judge.iter_errors(project))


def unlike_the_one(project: Project) -> Iterator[str]:
    """A replica is the service of compose.yaml, with another store and without a port on the machine."""
    one = load("compose.yaml")["services"]["forgehand"]
    volumes = set()
    for name in REPLICAS:
        replica = project["services"].get(name, {})
        if {k: v for k, v in replica.items() if k not in OWN} != {k: v for k, v in one.items() if k not in OWN}:
            yield f"replica: {name} is not as in compose.yaml"
        if not one["environment"].items() <= replica.get("environment", {}).items():
            yield f"replica: {name} has other settings than compose.yaml"
        if "ports" in replica:
            yield f"replica: {name} can be reached past the balancer"
        volumes |= {mount.split(":")[0] for mount in replica.get("volumes", [])}
    if len(volumes) != len(REPLICAS):
        yield "replica: two share a data directory"


def unsafe(project: Project) -> Iterator[str]:
    for name, service in project["services"].items():
        hardened = service.get("read_only") is True and service.get("cap_drop") == ["ALL"]
        if not hardened or "no-new-privileges:true" not in service.get("security_opt", []):
            yield f"security: {name} is not hardened"
        if not {*service.get("cap_add", [])} <= {"NET_BIND_SERVICE"}:
            yield f"security: {name} has capabilities"
        if service.get("ports") and name != "front":
            yield f"security: {name} is open to all"
        if any("PASSWORD" in one and not one.endswith("_FILE") for one in service.get("environment", {})):
            yield f"security: {name} has a password in its environment"
    if project["networks"]["database"] != {"internal": True} or "database" in project["services"]["front"]["networks"]:
        yield "security: the database can be reached from outside"


def unconnected(project: Project) -> Iterator[str]:
    database = project["services"]["database"]
    made = {database["environment"][f"POSTGRES_{one}"] for one in ("USER", "DB")}
    for name in REPLICAS:
        given = project["services"][name]["environment"]
        if unknown := [one for one in given if one.removesuffix("_FILE") not in known()]:
            yield f"connection: there is no setting {unknown}"
        if f"127.0.0.1:{given['FORGEHAND_PORT']}/readyz" not in str(project["services"][name].get("healthcheck")):
            yield f"connection: {name} does not say when it is ready"
        if given.get("FORGEHAND_DATABASE_URL") != "postgresql://forgehand@database/forgehand" or made != {"forgehand"}:
            yield f"connection: {name} does not find the database"
        if project["services"][name].get("depends_on") != {"database": {"condition": "service_healthy"}}:
            yield f"connection: {name} does not wait for the database"
    if "healthcheck" not in database or not database["image"].startswith("postgres:17-"):
        yield "connection: the database says nothing of its health, or is another version tomorrow"


def missing(project: Project) -> Iterator[str]:
    for name, service in project["services"].items():
        for secret in service.get("secrets", []):
            if f"/run/secrets/{secret}" not in service["environment"].values() or secret not in project["secrets"]:
                yield f"connection: {name} does not read the secret {secret}"
        for mount in service.get("volumes", []):
            source = mount.split(":")[0]
            if not (ROOT / source).exists() if source.startswith(".") else source not in project["volumes"]:
                yield f"connection: {name} mounts {source}, which is not there"


@pytest.mark.parametrize("name", ["compose.yaml", "compose.scale.yaml"])
def test_a_file_is_what_compose_expects(name: str) -> None:
    assert [*invalid(load(name))] == []


def test_the_replicas_are_as_safe_as_the_one_service(scale: Project) -> None:
    assert problems(scale) == []


def test_forgehand_reads_what_a_replica_is_given(scale: Project, tmp_path: Path) -> None:
    (tmp_path / "password").write_text("word", encoding="utf-8")
    given = {**scale["services"]["forgehand-1"]["environment"], "FORGEHAND_PUBLIC_URL": "https://bot.example"}
    given["FORGEHAND_DATABASE_PASSWORD_FILE"] = str(tmp_path / "password")
    read = settings.read({**needed(), **given})
    assert (
        isinstance(read.database, Secret) and read.database.reveal() == "postgresql://forgehand:word@database/forgehand"
    )


def test_the_balancer_asks_each_replica(scale: Project) -> None:
    text = (ROOT / "deploy/Caddyfile").read_text(encoding="utf-8")
    port = scale["services"]["forgehand-1"]["environment"]["FORGEHAND_PORT"]
    assert "{$REPLICAS:" + " ".join(f"{name}:{port}" for name in REPLICAS) + "}" in text
    assert scale["services"]["front"]["volumes"][0] == "./deploy/Caddyfile:/etc/caddy/Caddyfile:ro"


def test_the_password_cannot_be_committed_by_mistake(scale: Project) -> None:
    folder = Path(scale["secrets"]["database-password"]["file"]).parent
    assert f"/{folder}/" in (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()


DEFECTS: list[tuple[str, Callable[[dict[str, Any]], object]]] = [
    ("schema", lambda all_: all_["front"].update(restarts="always")),
    ("schema", lambda all_: all_["database"]["healthcheck"].update(retries=["many"])),
    ("replica", lambda all_: all_["forgehand-2"].update(stop_grace_period="5s")),
    ("replica", lambda all_: all_["forgehand-2"].update(ports=["8080:8080"])),
    ("replica", lambda all_: all_["forgehand-3"].update(volumes=["replica-1:/data"])),
    ("replica", lambda all_: all_["forgehand-1"]["environment"].update(FORGEHAND_PORT="80")),
    ("security", lambda all_: all_["database"].pop("read_only")),
    ("security", lambda all_: all_["database"].update(ports=["5432:5432"])),
    ("security", lambda all_: all_["database"]["environment"].update(POSTGRES_PASSWORD="x")),
    ("security", lambda all_: all_["front"]["cap_add"].append("SYS_ADMIN")),
    ("security", lambda all_: all_["front"]["networks"].append("database")),
    ("connection", lambda all_: all_["forgehand-3"]["environment"].update(FORGEHAND_MAX_SESSION="3")),
    ("connection", lambda all_: all_["forgehand-2"].pop("healthcheck")),
    ("connection", lambda all_: all_["database"].update(image="postgres:latest")),
    ("connection", lambda all_: all_["database"]["environment"].update(POSTGRES_DB="other")),
    ("connection", lambda all_: all_["forgehand-1"].pop("depends_on")),
    ("connection", lambda all_: all_["front"]["volumes"].append("./deploy/Caddy:/etc/caddy")),
]


@pytest.mark.parametrize(("word", "spoil"), DEFECTS)
def test_a_defect_is_seen(scale: Project, word: str, spoil: Callable[[dict[str, Any]], object]) -> None:
    spoiled: Project = json.loads(json.dumps(scale))  # without the anchor that the replicas share
    assert problems(copy.deepcopy(spoiled)) == []
    spoil(spoiled["services"])
    assert any(one.startswith(word) for one in problems(spoiled))
