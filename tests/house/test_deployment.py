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
MANIFEST = ROOT / "docs" / "deploy" / "kubernetes" / "fleet.yaml"
DOCUMENTS: list[dict[str, Any]] = list(yaml.safe_load_all(MANIFEST.read_text(encoding="utf-8")))
PODS = [
    document["spec"]["template"]["spec"] for document in DOCUMENTS if "template" in document.get("spec", {})
]
CONTAINERS = [container for pod in PODS for container in pod["containers"]]


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


def test_the_manifest_has_services_and_workers_for_one_gpu_each() -> None:
    kinds = [(document["kind"], document["metadata"]["name"]) for document in DOCUMENTS]
    assert kinds == [("Namespace", "compilewatch"), ("Deployment", "service"), ("StatefulSet", "worker")]
    assert [container["resources"]["limits"].get("nvidia.com/gpu") for container in CONTAINERS] == [None, 1]
    for document in DOCUMENTS[1:]:
        labels = document["spec"]["template"]["metadata"]["labels"]
        assert document["spec"]["selector"]["matchLabels"] == labels


def test_the_manifests_commands_exist() -> None:
    assert [unknown_words(container["args"]) for container in CONTAINERS] == [[], []]


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
    assert re.findall(r"postgres\w*://", MANIFEST.read_text(encoding="utf-8")) == []
