"""The Helm chart: linted, held against the schemas of Kubernetes, and a server that starts with what it renders."""

import base64
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import kubernetes_validate
import pytest
import requests
import yaml

from harness.deployment import PORTS, start_as
from harness.programs import TOOLS
from harness.server import REPOSITORY, Cairn

CHART = REPOSITORY / "packaging/helm/cairn"
HELM = TOOLS / "helm"
# The oldest version that the chart allows, and the newest whose schemas the tests have.
VERSIONS = ("1.27.0", "1.37.0")
EVERYTHING = (
    "ingress.s3.enabled=true", "ingress.s3.tlsSecret=s3-tls", "ingress.s3.className=nginx", "ingress.console.enabled=true",
    "ingress.console.tlsSecret=console-tls", "metrics.serviceMonitor.enabled=true", "metrics.serviceMonitor.labels.release=prometheus",
    "secrets.existingSecret=own", "persistence.existingClaim=own", "tls.existingSecret=own-tls", "memoryLimit=1GiB", "executors=2",
    "settings.SERVICE_S3_COMPATIBILITY=extended", "console.hosts={nas,https://nas.example.com}", "service.s3.type=LoadBalancer",
    "nodeSelector.disk=nvme", "tolerations[0].operator=Exists", "podLabels.a=b", "podAnnotations.a=b", "priorityClassName=high",
    "imagePullSecrets[0].name=registry", "seccomp.type=Unconfined",
)
NOTHING = ("console.enabled=false", "persistence.storageClassName=local", "persistence.annotations.a=b")
# What the operator's type ServiceMonitor has, as far as the chart uses it.
SERVICE_MONITOR = {
    "spec": {"selector", "endpoints"}, "endpoint": {"port", "path", "interval", "authorization", "relabelings"},
    "authorization": {"type", "credentials"}, "relabeling": {"targetLabel", "replacement"},
}


def helm(*words: str | Path) -> subprocess.CompletedProcess:
    """Runs Helm, which asks no cluster."""
    return subprocess.run([HELM, *words], capture_output=True, text=True)


def rendered(chart: Path, *values: str, version: str = VERSIONS[-1]) -> list[dict]:
    """Returns what an installation would create."""
    options = [word for value in values for word in ("--set", value)]
    done = helm("template", "shop", chart, "--kube-version", version, *options)
    assert done.returncode == 0, done.stderr
    return [document for document in yaml.safe_load_all(done.stdout) if document]


def check(documents: list[dict], version: str) -> None:
    """Holds everything against the schemas of a version. A field that is not in them is an error."""
    for document in documents:
        if document["kind"] != "ServiceMonitor":
            kubernetes_validate.validate(document, version, strict=True)


def of_kind(documents: list[dict], kind: str, name: str = "") -> dict:
    """Returns the only document of a kind, or that with this name."""
    (found,) = [found for found in documents if found["kind"] == kind and name in ("", found["metadata"]["name"])]
    return found


def pod_of(documents: list[dict]) -> tuple[dict, dict]:
    """Returns the pod and its container."""
    pod = of_kind(documents, "StatefulSet")["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    return pod, container


def test_chart_has_no_faults():
    """By Helm's own linter, with the defaults and with everything."""
    for values in ((), EVERYTHING, NOTHING):
        done = helm("lint", "--strict", CHART, "--kube-version", VERSIONS[-1], *(word for value in values for word in ("--set", value)))
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("values", [(), EVERYTHING, NOTHING], ids=["defaults", "everything", "nothing"])
def test_kubernetes_knows_every_field(version: str, values: tuple[str, ...]):
    """Of all that is created, in the oldest and the newest version."""
    check(rendered(CHART, *values, version=version), version)


def test_broken_chart_is_found(tmp_path: Path):
    """Shows that the checks can fail: a wrong field, a wrong type, a template that does not end, a value that nobody reads."""
    chart = tmp_path / "cairn"
    shutil.copytree(CHART, chart)
    template = chart / "templates/statefulset.yaml"
    text = template.read_text()
    for right, wrong in (("  replicas: 1", "  replica: 1"), ("periodSeconds: 10", "periodSeconds: often"), ("readOnlyRootFilesystem", "readOnlyRoot")):
        assert right in text
        template.write_text(text.replace(right, wrong))
        with pytest.raises(kubernetes_validate.ValidationError):
            check(rendered(chart), VERSIONS[-1])
    template.write_text(text.replace("{{- end }}", "", 1))
    assert helm("lint", "--strict", chart, "--kube-version", VERSIONS[-1]).returncode != 0
    done = helm("template", "shop", CHART, "--kube-version", VERSIONS[-1], "--set", "persistance.size=1Ti")
    assert done.returncode != 0 and "persistance" in done.stderr


def test_whole_numbers_of_a_values_file_stay_whole(tmp_path: Path):
    """Helm reads them as floating point: from a million on, the server got 1e+06 and refused it."""
    values = tmp_path / "values.yaml"
    numbers = {"SERVICE_SERVER_CONNECTIONS_MAX": 1_000_000, "SERVICE_STORAGE_RESERVE_BYTES": 12_345_678_901_234, "SERVICE_STORAGE_LOW_SPACE_PERCENT": 7}
    others = {"SERVICE_S3_COMPATIBILITY": "extended", "SERVICE_EVENTS_ENABLED": True}
    values.write_text(yaml.safe_dump({"settings": numbers | others, "terminationGracePeriodSeconds": 2_000_000}))
    done = helm("template", "shop", CHART, "--kube-version", VERSIONS[-1], "--values", values)
    pod, container = pod_of([document for document in yaml.safe_load_all(done.stdout) if document])
    variables = {variable["name"]: variable["value"] for variable in container["env"]}
    expected = {name: str(number) for name, number in numbers.items()} | {"SERVICE_S3_COMPATIBILITY": "extended", "SERVICE_EVENTS_ENABLED": "true"}
    assert {name: variables[name] for name in expected} == expected
    assert pod["terminationGracePeriodSeconds"] == 2_000_000


def test_settings_do_not_repeat_what_the_chart_sets():
    """A second variable of the same name won, or both were there, and Kubernetes took the last one without a word."""
    own = {variable["name"] for values in (EVERYTHING, NOTHING) for variable in pod_of(rendered(CHART, *values))[1]["env"]}
    own.remove("SERVICE_S3_COMPATIBILITY")
    assert len(own) == 15
    for name in (*own, "SERVICE_SERVER_DATA_DIR", "SERVICE_AUTH_ROOT_ACCESS_KEY", "SERVICE_SERVER_TLS_KEY", "SERVICE_CREDENTIAL_MASTER_KEY"):
        done = helm("template", "shop", CHART, "--kube-version", VERSIONS[-1], "--set", f"settings.{name}=x")
        assert done.returncode != 0, name
        value = re.search(rf"settings\.{name}: the chart sets this variable itself\. Remove it from settings, and use the value (\S+)", done.stderr)[1]
        found = yaml.safe_load((CHART / "values.yaml").read_text())
        for part in value.split("."):
            found = found[part]


def test_documented_rendering_needs_no_cluster():
    """The line of docs/installing.md, as it stands. Without a version, Helm took the one that it was built with."""
    text = (REPOSITORY / "docs/installing.md").read_text()
    line = text.split("<!-- The tests run this line as it stands. -->\n```sh\n", 1)[1].split("```", 1)[0]
    done = subprocess.run(["sh", "-euc", f'helm() {{ "$HELM" "$@"; }}\n{line}'], env={"HELM": str(HELM)}, cwd=REPOSITORY, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert of_kind(list(yaml.safe_load_all(done.stdout)), "StatefulSet")["metadata"]["name"] == "cairn"


def test_pod_has_no_rights_and_the_profile_with_io_uring():
    """One replica on one volume, which stays when the release is uninstalled."""
    documents = rendered(CHART)
    pod, container = pod_of(documents)
    assert pod["securityContext"]["seccompProfile"] == {"type": "Localhost", "localhostProfile": "cairn.json"}
    assert pod["securityContext"]["runAsNonRoot"] and pod["securityContext"]["runAsUser"] == 10001 and pod["automountServiceAccountToken"] is False
    assert container["securityContext"] == {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}}
    assert container["resources"]["limits"] == {"memory": "2Gi"}
    spec = of_kind(documents, "StatefulSet")["spec"]
    assert spec["replicas"] == 1 and set(spec["persistentVolumeClaimRetentionPolicy"].values()) == {"Retain"}
    (claim,) = spec["volumeClaimTemplates"]
    volumes = {volume["name"] for volume in pod["volumes"]} | {claim["metadata"]["name"]}
    assert {mount["name"] for mount in container["volumeMounts"]} == volumes
    assert of_kind(documents, "Secret")["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}


def test_ports_and_probes_are_those_of_the_image():
    """Each Service leads to a port of the container, and the metrics are where Prometheus looks for them."""
    documents = rendered(CHART, *EVERYTHING)
    _, container = pod_of(documents)
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert sorted(ports.values()) == sorted(PORTS.values())
    probes = {name: container[name]["httpGet"] for name in ("startupProbe", "livenessProbe", "readinessProbe")}
    assert {(probe["path"], probe["port"]) for probe in probes.values()} == {("/ready", "management"), ("/health", "management")}
    assert probes["livenessProbe"]["path"] == "/health", "a full disk is no reason to end the process"
    services = [found for found in documents if found["kind"] == "Service"]
    offered = {(service["metadata"]["name"], port["name"]) for service in services for port in service["spec"]["ports"]}
    assert {port["targetPort"] for service in services for port in service["spec"]["ports"]} == set(ports)
    for ingress in (found for found in documents if found["kind"] == "Ingress"):
        backend = ingress["spec"]["rules"][0]["http"]["paths"][0]["backend"]["service"]
        assert (backend["name"], backend["port"]["name"]) in offered
    monitor = of_kind(documents, "ServiceMonitor")["spec"]
    (endpoint,) = monitor["endpoints"]
    assert set(monitor) == SERVICE_MONITOR["spec"] and set(endpoint) == SERVICE_MONITOR["endpoint"]
    assert set(endpoint["authorization"]) == SERVICE_MONITOR["authorization"] and set(endpoint["relabelings"][0]) == SERVICE_MONITOR["relabeling"]
    chosen = [service for service in services if monitor["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()]
    assert [(service["metadata"]["name"], endpoint["port"]) for service in chosen] == [("shop-cairn-management", "management")]
    assert endpoint["relabelings"][0]["replacement"] in (REPOSITORY / "docs/metrics.md").read_text()


def test_server_starts_with_what_the_chart_renders(make_store: Callable[..., Cairn], tmp_path: Path):
    """With its variables and its generated secrets; probes, metrics and console answer."""
    documents = rendered(CHART, "executors=1", "memoryLimit=512MiB", "ingress.console.enabled=true", "settings.SERVICE_S3_COMPATIBILITY=extended")
    _, container = pod_of(documents)
    secrets = {name: base64.b64decode(value).decode() for name, value in of_kind(documents, "Secret")["data"].items()}
    variables = {variable["name"]: variable["value"] for variable in container["env"]}
    (mounted,) = [mount["mountPath"] for mount in container["volumeMounts"] if mount["name"] == "secrets"]
    store = start_as(make_store, variables, mounted, secrets, tmp_path / "mounted")
    store.s3.create_bucket("photos")
    for name in ("startupProbe", "livenessProbe", "readinessProbe"):
        assert requests.get(store.management + container[name]["httpGet"]["path"], timeout=30).status_code == 200
    scrape = requests.get(f"{store.management}/metrics", headers={"Authorization": f"Bearer {secrets['metrics-scrape-token']}"}, timeout=30)
    assert scrape.status_code == 200
    assert requests.get(store.console, headers={"Host": "console.example.com"}, timeout=30).status_code == 200


def test_values_are_documented():
    """Each has a comment above it or above its group, and the page about installing names the chart and its secrets."""
    text = (CHART / "values.yaml").read_text()
    page = (REPOSITORY / "docs/installing.md").read_text()
    assert "packaging/helm/cairn" in page
    for name in of_kind(rendered(CHART), "Secret")["data"]:
        assert name in text and name in page, name
    known = set(re.findall(r"`(SERVICE_[A-Z0-9_]+)`", (REPOSITORY / "docs/configuration.md").read_text()))
    named = set(re.findall(r"SERVICE_[A-Z0-9_]+", text + (CHART / "templates/statefulset.yaml").read_text()))
    assert {name.removesuffix("_FILE") for name in named} <= known
