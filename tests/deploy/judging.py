"""Says what is wrong with the objects of a cluster: each check returns sentences, and none if all is well."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import kubernetes_validate  # type: ignore[import-untyped]

from bot.web.health import health_routes
from tests.deploy.kustomize import Thing, walk
from tests.world.settings_read import known

ROOT = Path(__file__).parents[2]
OLDEST, NEWEST = "1.30", "1.37"
"""The versions of Kubernetes whose schemas must accept everything: the oldest that has all fields, and the newest."""


def problems(things: list[Thing]) -> list[str]:
    return [words for check in CHECKS for words in check(things)]


def the(things: list[Thing], kind: str) -> Thing:
    [found] = [one for one in things if one["kind"] == kind]
    return found


def pod(things: list[Thing]) -> Thing:
    return cast(Thing, the(things, "Deployment")["spec"]["template"]["spec"])


def container(things: list[Thing]) -> Thing:
    [found] = pod(things)["containers"]
    return cast(Thing, found)


def environment(things: list[Thing]) -> dict[str, str]:
    """The variables of the container, as it sees them."""
    here = container(things)
    given: dict[str, str] = {}
    for source in here["envFrom"]:
        name = source["configMapRef"]["name"]
        found = [one for one in things if one["kind"] == "ConfigMap" and one["metadata"]["name"] == name]
        given |= found[0]["data"] if found else {}
    return given | {one["name"]: one["value"] for one in here["env"]}


def image_says(instruction: str) -> list[str]:
    """The words after each such instruction of the Dockerfile."""
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")
    return re.findall(rf"^{instruction} (.*)$", text, re.MULTILINE)


def schema(things: list[Thing]) -> Iterator[str]:
    for thing in things:
        for version in (OLDEST, NEWEST):
            try:
                kubernetes_validate.validate(thing, version, strict=True)
            except kubernetes_validate.ValidationError as error:
                yield f"schema: {thing['kind']} in {version}: {error.message}"


def references(things: list[Thing]) -> Iterator[str]:
    names = {(one["kind"], one["metadata"]["name"]) for one in things}
    here, inside = container(things), pod(things)
    wanted = [("ConfigMap", one["configMapRef"]["name"]) for one in here["envFrom"]]
    wanted += [("Secret", one["secret"]["secretName"]) for one in inside["volumes"] if "secret" in one]
    wanted += [
        ("Service", part["service"]["name"])
        for part in walk(the(things, "Ingress"))
        if isinstance(part.get("service"), dict)
    ]
    yield from (f"reference: there is no {kind} {name}" for kind, name in wanted if (kind, name) not in names)
    mounted = {one["name"] for one in here["volumeMounts"]}
    if mounted != {one["name"] for one in inside["volumes"]}:
        yield "reference: volumes and mounts differ"


def selectors(things: list[Thing]) -> Iterator[str]:
    labels = the(things, "Deployment")["spec"]["template"]["metadata"]["labels"].items()
    for kind, path in (
        ("Deployment", ("selector", "matchLabels")),
        ("Service", ("selector",)),
        ("PodDisruptionBudget", ("selector", "matchLabels")),
        ("NetworkPolicy", ("podSelector", "matchLabels")),
    ):
        chosen = the(things, kind)["spec"]
        for name in path:
            chosen = chosen.get(name, {})
        if not chosen or not chosen.items() <= labels:
            yield f"selector: that of the {kind} does not find the pods"


def ports(things: list[Thing]) -> Iterator[str]:
    here = container(things)
    offered = {one["name"]: str(one["containerPort"]) for one in here["ports"]}
    if {*offered.values()} != {environment(things).get("FORGEHAND_PORT")} or image_says("EXPOSE") != [
        *offered.values()
    ]:
        yield "port: the container's, the setting's and the image's differ"
    asked = [part["port"] for part in walk(here) if "path" in part and "port" in part]
    asked += [one["targetPort"] for one in the(things, "Service")["spec"]["ports"]]
    asked += [port["port"] for rule in the(things, "NetworkPolicy")["spec"]["ingress"] for port in rule["ports"]]
    yield from (f"port: there is no {one}" for one in asked if one not in offered)
    served = {one["name"] for one in the(things, "Service")["spec"]["ports"]}
    for part in walk(the(things, "Ingress")):
        if isinstance(part.get("service"), dict) and part["service"]["port"]["name"] not in served:
            yield "port: the Ingress names one that the Service does not have"


def probes(things: list[Thing]) -> Iterator[str]:
    served = {route.path for route in health_routes({}) if hasattr(route, "path")}
    here = container(things)
    wanted = {"startupProbe": "/healthz", "livenessProbe": "/healthz", "readinessProbe": "/readyz"}
    for name, path in wanted.items():
        if here.get(name, {}).get("httpGet", {}).get("path") != path or path not in served:
            yield f"probe: {name} does not ask {path}"


def settings(things: list[Thing]) -> Iterator[str]:
    given = environment(things)
    yield from (f"setting: there is no {one}" for one in given if one.removesuffix("_FILE") not in known())
    secrets = the(things, "Secret")["data"]
    [place] = [one["mountPath"] for one in container(things)["volumeMounts"] if one["name"] == "secrets"]
    files = {value for name, value in given.items() if name.endswith("_FILE")}
    if files != {f"{place}/{name}" for name in secrets}:
        yield "setting: the files that settings name are not those of the Secret"
    if pod(things).get("enableServiceLinks") is not False:
        yield "setting: Kubernetes would set FORGEHAND_PORT to the address of the Service"


def folders(things: list[Thing]) -> Iterator[str]:
    data = Path(environment(things)["FORGEHAND_DATA_DIR"])
    mounts = [Path(one["mountPath"]) for one in container(things)["volumeMounts"]]
    if data in mounts or not any(one in data.parents for one in mounts):
        yield "folder: the data directory must lie in a mount, and a mount itself belongs to root"
    if [str(data.parent)] != image_says("VOLUME"):
        yield "folder: the data directory is not in the image's volume"
    if Path("/tmp") not in mounts:
        yield "folder: there is no /tmp to write to"


def security(things: list[Thing]) -> Iterator[str]:
    inside, here = pod(things), container(things)
    [user] = re.findall(r"--uid (\d+)", (ROOT / "Dockerfile").read_text(encoding="utf-8"))
    of_pod, of_container = inside.get("securityContext", {}), here.get("securityContext", {})
    wanted: tuple[tuple[str, Any, Any], ...] = (
        ("the user", of_pod.get("runAsUser"), int(user)),
        ("the group of the volumes", of_pod.get("fsGroup"), int(user)),
        ("not as root", of_pod.get("runAsNonRoot"), True),
        ("seccomp", of_pod.get("seccompProfile"), {"type": "RuntimeDefault"}),
        ("no further privileges", of_container.get("allowPrivilegeEscalation"), False),
        ("a read-only root", of_container.get("readOnlyRootFilesystem"), True),
        ("capabilities", of_container.get("capabilities"), {"drop": ["ALL"]}),
        ("no token of the cluster", inside.get("automountServiceAccountToken"), False),
        ("a limit of memory", "memory" in here.get("resources", {}).get("limits", {}), True),
        ("requests", here.get("resources", {}).get("requests", {}).keys() >= {"cpu", "memory"}, True),
        ("both directions", sorted(the(things, "NetworkPolicy")["spec"]["policyTypes"]), ["Egress", "Ingress"]),
    )
    yield from (f"security: {name} is {found}, not {right}" for name, found, right in wanted if found != right)


def upgrades(things: list[Thing]) -> Iterator[str]:
    deployment, inside = the(things, "Deployment")["spec"], pod(things)
    if deployment["replicas"] < 2:
        yield "upgrade: one replica is no replica"
    if deployment.get("strategy", {}).get("rollingUpdate", {}).get("maxUnavailable") != 0:
        yield "upgrade: a replica may go before its successor is ready"
    pause = container(things).get("lifecycle", {}).get("preStop", {}).get("sleep", {}).get("seconds", 0)
    if pause < 1 or inside["terminationGracePeriodSeconds"] < pause + 20:
        yield "upgrade: a replica needs 20 seconds after the pause in which traffic leaves it"
    if the(things, "PodDisruptionBudget")["spec"].get("maxUnavailable") != 1:
        yield "upgrade: more than one replica may be evicted at once"


def streams(things: list[Thing]) -> Iterator[str]:
    said = the(things, "Ingress")["metadata"]["annotations"]
    start = "nginx.ingress.kubernetes.io/proxy-"
    if said.get(f"{start}buffering") != "off":
        yield "stream: the Ingress keeps events back"
    if int(said.get(f"{start}read-timeout", 60)) < 3600:
        yield "stream: the Ingress cuts a quiet stream"
    if said.get(f"{start}body-size") != "32m":
        yield "stream: the Ingress refuses large requests"
    if "non_idempotent" in said.get(f"{start}next-upstream", ""):
        yield "stream: the Ingress sends a POST twice"


def ways_out(things: list[Thing]) -> Iterator[str]:
    rules = the(things, "NetworkPolicy")["spec"]["egress"]
    if sorted({port["port"] for rule in rules for port in rule["ports"]}) != [53, 443, 5432]:
        yield "way out: more or less than names, 443 and the database"
    for rule in rules:
        if not rule.get("to"):
            yield "way out: a rule leads anywhere"
        everywhere = [one["ipBlock"] for one in rule.get("to", []) if one.get("ipBlock", {}).get("cidr") == "0.0.0.0/0"]
        if any("169.254.0.0/16" not in one.get("except", []) for one in everywhere):
            yield "way out: the cloud's metadata can be reached"


CHECKS: tuple[Callable[[list[Thing]], Iterator[str]], ...] = (
    schema,
    references,
    selectors,
    ports,
    probes,
    settings,
    folders,
    security,
    upgrades,
    streams,
    ways_out,
)
