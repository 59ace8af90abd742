"""The cluster's objects, built as kustomize builds them: valid for Kubernetes, and in agreement with the product."""

from __future__ import annotations

import copy
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bot import settings
from bot.settings import Secret
from tests.deploy import judging, kustomize
from tests.deploy.kustomize import Thing
from tests.world.settings_read import needed

FOLDER = judging.ROOT / "deploy/kubernetes"
EXPLAINED = re.findall(r"^\| `(\S+)` \|", (FOLDER / "secrets/README.md").read_text(encoding="utf-8"), re.MULTILINE)
CONTENT = {
    "private-key.pem": "FORGEHAND_PRIVATE_KEY",
    "webhook-secret": "FORGEHAND_WEBHOOK_SECRET",
    "secret-key": "FORGEHAND_SECRET_KEY",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with every secret that its README explains."""
    made = tmp_path_factory.mktemp("cluster") / "kubernetes"
    shutil.copytree(FOLDER, made)
    for name in EXPLAINED:
        (made / "secrets" / name).write_text(needed().get(CONTENT.get(name, ""), "value"), encoding="utf-8")
    return made


@pytest.fixture(scope="module")
def things(folder: Path) -> list[Thing]:
    return kustomize.build(folder)


def test_the_objects_are_valid_and_agree_with_the_product(things: list[Thing]) -> None:
    assert judging.problems(things) == []


def test_forgehand_reads_what_the_container_is_given(things: list[Thing], folder: Path) -> None:
    given = {"HOME": "/nowhere", **judging.environment(things)}
    files = {
        name: str(folder / "secrets" / Path(value).name) for name, value in given.items() if name.endswith("_FILE")
    }
    read = settings.read({**given, **files})
    assert isinstance(read.database, Secret) and ":value@" in read.database.reveal()
    assert read.e2b is not None and read.e2b.gateway_url == read.public_url
    host = judging.the(things, "Ingress")["spec"]["rules"][0]["host"]
    assert read.public_url == f"https://{host}"
    assert read.limits.max_sessions < read.e2b.sandboxes, "checks run in a second sandbox"


def test_no_secret_can_be_committed_by_mistake() -> None:
    lines = (FOLDER / "secrets/.gitignore").read_text(encoding="utf-8").splitlines()
    assert lines == ["*", "!.gitignore", "!README.md"]


def test_a_missing_secret_is_named(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "kubernetes")
    (tmp_path / "kubernetes/secrets/e2b-api-key").unlink()
    with pytest.raises(kustomize.Unbuildable, match="e2b-api-key does not exist"):
        kustomize.build(tmp_path / "kubernetes")


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("  - service.yaml\n", "  - services.yaml\n"),
        ("  - service.yaml\n", "  - service.yaml\n  - service.yaml\n"),
        ("namespace: forgehand", "namespaces: forgehand"),
        ("envs: [settings.env]", "envs: [settings.env]\n    literal: [A=b]"),
    ],
)
def test_a_kustomization_that_cannot_be_built_is_refused(folder: Path, tmp_path: Path, right: str, wrong: str) -> None:
    shutil.copytree(folder, tmp_path / "kubernetes")
    file = tmp_path / "kubernetes/kustomization.yaml"
    text = file.read_text(encoding="utf-8")
    assert right in text
    file.write_text(text.replace(right, wrong), encoding="utf-8")
    with pytest.raises(kustomize.Unbuildable):
        kustomize.build(tmp_path / "kubernetes")


def test_a_changed_setting_restarts_the_replicas(folder: Path, tmp_path: Path, things: list[Thing]) -> None:
    shutil.copytree(folder, tmp_path / "kubernetes")
    with (tmp_path / "kubernetes/settings.env").open("a", encoding="utf-8") as file:
        file.write("FORGEHAND_COMMAND=/forge\n")
    changed = kustomize.build(tmp_path / "kubernetes")
    assert judging.problems(changed) == []
    assert judging.the(changed, "Deployment") != judging.the(things, "Deployment")


def spec(things: list[Thing], kind: str) -> Thing:
    found: Thing = judging.the(things, kind)["spec"]
    return found


def put(place: Callable[[list[Thing]], Any], key: Any, value: Any) -> Callable[[list[Thing]], None]:
    def change(things: list[Thing]) -> None:
        place(things)[key] = value

    return change


def take(place: Callable[[list[Thing]], Any], key: Any) -> Callable[[list[Thing]], None]:
    def change(things: list[Thing]) -> None:
        del place(things)[key]

    return change


def of_ingress(things: list[Thing]) -> Thing:
    found: Thing = judging.the(things, "Ingress")["metadata"]["annotations"]
    return found


CONTAINER, POD = judging.container, judging.pod
DEFECTS: list[tuple[str, Callable[[list[Thing]], None]]] = [
    ("schema", put(CONTAINER, "livenesProbe", {})),
    ("schema", put(lambda all_: spec(all_, "PodDisruptionBudget"), "maxUnavailable", [1])),
    ("schema", put(lambda all_: spec(all_, "NetworkPolicy"), "policyTypes", "Egress")),
    ("reference", put(lambda all_: CONTAINER(all_)["envFrom"][0]["configMapRef"], "name", "other")),
    ("reference", put(lambda all_: POD(all_)["volumes"][2]["secret"], "secretName", "forgehand")),
    ("reference", take(lambda all_: CONTAINER(all_)["volumeMounts"], 0)),
    ("selector", put(lambda all_: spec(all_, "Service"), "selector", {"app": "forgehand"})),
    ("selector", put(lambda all_: spec(all_, "NetworkPolicy")["podSelector"], "matchLabels", {})),
    ("port", put(lambda all_: spec(all_, "Service")["ports"][0], "targetPort", 80)),
    ("port", put(lambda all_: CONTAINER(all_)["ports"][0], "containerPort", 8000)),
    ("port", put(lambda all_: spec(all_, "Service")["ports"][0], "name", "web")),
    ("probe", put(lambda all_: CONTAINER(all_)["livenessProbe"]["httpGet"], "path", "/readyz")),
    ("probe", put(lambda all_: CONTAINER(all_)["readinessProbe"]["httpGet"], "path", "/ready")),
    ("setting", lambda all_: CONTAINER(all_)["env"].append({"name": "FORGEHAND_MAX_SESSION", "value": "3"})),
    ("setting", put(POD, "enableServiceLinks", True)),
    ("setting", lambda all_: judging.the(all_, "Secret")["data"].pop("metrics-token")),
    ("folder", put(lambda all_: CONTAINER(all_)["env"][0], "value", "/data")),
    ("folder", put(lambda all_: CONTAINER(all_)["env"][0], "value", "/srv/forgehand")),
    ("security", put(lambda all_: POD(all_)["securityContext"], "runAsUser", 0)),
    ("security", take(lambda all_: POD(all_)["securityContext"], "seccompProfile")),
    ("security", put(lambda all_: CONTAINER(all_)["securityContext"], "readOnlyRootFilesystem", False)),
    ("security", take(lambda all_: CONTAINER(all_)["securityContext"], "capabilities")),
    ("security", put(lambda all_: CONTAINER(all_)["securityContext"], "allowPrivilegeEscalation", True)),
    ("security", take(POD, "automountServiceAccountToken")),
    ("security", put(lambda all_: spec(all_, "NetworkPolicy"), "policyTypes", ["Ingress"])),
    ("upgrade", put(lambda all_: spec(all_, "Deployment"), "replicas", 1)),
    ("upgrade", put(lambda all_: spec(all_, "Deployment")["strategy"]["rollingUpdate"], "maxUnavailable", 1)),
    ("upgrade", put(POD, "terminationGracePeriodSeconds", 20)),
    ("stream", put(of_ingress, "nginx.ingress.kubernetes.io/proxy-buffering", "on")),
    ("stream", put(of_ingress, "nginx.ingress.kubernetes.io/proxy-next-upstream", "error non_idempotent")),
    ("stream", take(of_ingress, "nginx.ingress.kubernetes.io/proxy-read-timeout")),
    ("way out", take(lambda all_: spec(all_, "NetworkPolicy")["egress"], 0)),
    ("way out", take(lambda all_: spec(all_, "NetworkPolicy")["egress"][1]["to"][0]["ipBlock"], "except")),
    ("way out", lambda all_: spec(all_, "NetworkPolicy")["egress"][2].pop("to")),
]


@pytest.mark.parametrize(("word", "spoil"), DEFECTS)
def test_a_defect_is_seen(things: list[Thing], word: str, spoil: Callable[[list[Thing]], None]) -> None:
    spoiled = copy.deepcopy(things)
    spoil(spoiled)
    assert any(one.startswith(word) for one in judging.problems(spoiled))
