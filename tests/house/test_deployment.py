"""What is deployed: units and manifests name commands that exist, and give away nothing."""

from __future__ import annotations

import configparser
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.house.test_docs import unknown_words
from tests.house.tracked import ROOT

UNITS = sorted((ROOT / "docs" / "deploy" / "systemd").glob("*.service"))
KUBERNETES = ROOT / "docs" / "deploy" / "kubernetes"
MANIFEST = KUBERNETES / "fleet.yaml"


def documents_of(path: Path) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(path.read_text(encoding="utf-8")))


def pod_of(document: dict[str, Any]) -> dict[str, Any] | None:
    """The pod that a Deployment, StatefulSet, Job or CronJob starts; None of what starts none."""
    spec = document.get("spec", {})
    pod: dict[str, Any] | None = (
        spec.get("jobTemplate", {"spec": spec})["spec"].get("template", {}).get("spec")
    )
    return pod


DOCUMENTS = documents_of(MANIFEST)
ON_DEMAND = [
    document
    for name in ("worker-job", "worker-cronjob")
    for document in documents_of(KUBERNETES / f"{name}.yaml")
]
PODS = [pod for document in [*DOCUMENTS, *ON_DEMAND] if (pod := pod_of(document))]
CONTAINERS = [container for pod in PODS for container in pod["containers"]]
SCHEMA_VERSION = "1.37"


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_units_run_commands_that_exist_as_nobody_special(path: Path) -> None:
    unit = configparser.ConfigParser(interpolation=None)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read_string(path.read_text(encoding="utf-8"))
    program, *arguments = shlex.split(unit["Service"]["ExecStart"])
    assert program.endswith("/compilewatch")
    assert unknown_words(arguments) == []
    assert unit["Service"]["User"] != "root"
    assert unit["Service"]["Restart"] == "always"


def test_the_manifests_commands_exist() -> None:
    assert [unknown_words(container["args"]) for container in CONTAINERS] == [[]] * 4


def test_every_manifest_is_valid_kubernetes() -> None:
    """Against the schema that Kubernetes itself publishes, strictly: an unknown key is an error."""
    validator = pytest.importorskip("kubernetes_validate", reason="needs: pip install kubernetes-validate")
    paths = sorted(KUBERNETES.glob("*.yaml"))
    assert [path.stem for path in paths] == ["fleet", "worker-cronjob", "worker-job"]
    for path in paths:
        for document in documents_of(path):
            assert validator.validate(document, SCHEMA_VERSION, strict=True) == SCHEMA_VERSION
    (job,) = documents_of(KUBERNETES / "worker-job.yaml")
    job["spec"]["backofLimit"] = 1
    with pytest.raises(validator.ValidationError, match="backofLimit"):
        validator.validate(job, SCHEMA_VERSION, strict=True)


def test_pods_may_write_only_where_they_must_and_hold_no_password() -> None:
    for pod in PODS:
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["automountServiceAccountToken"] is False
    for container in CONTAINERS:
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert {mount["mountPath"] for mount in container["volumeMounts"]} == {
            "/etc/compilewatch",
            "/data",
            "/tmp",
        }
        secret = {variable["name"] for variable in container["env"] if "valueFrom" in variable}
        assert secret == {"COMPILEWATCH_DATABASE_URL", "PGPASSWORD"}
    for path in KUBERNETES.glob("*.yaml"):
        assert re.findall(r"postgres\w*://", path.read_text(encoding="utf-8")) == []
