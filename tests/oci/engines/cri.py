"""critest, Kubernetes' tests of container runtimes, against containerd with lind-oci as the handler `lind`.

Images come from no registry: each is the root file system of these tests, under the name that a test asks for."""

from __future__ import annotations

import json
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import containerd
import install
from table import Table

SUITE = "critest"
SECONDS = 3000
STAGING = "gcr.io/k8s-staging-cri-tools/"
E2E = "registry.k8s.io/e2e-test-images/"
SERVER = "echo httpd; exec httpd -f -vv -p {port} -h /www"
IMAGES: dict[str, dict[str, Any]] = {
    containerd.IMAGE: {},
    f"{E2E}nginx:1.14-2": {"Cmd": ["sh", "-c", SERVER.format(port=80)]},
    f"{E2E}httpd:2.4.39-4": {"Cmd": ["sh", "-c", SERVER.format(port=80)]},
    f"{E2E}nonewprivs:1.3": {"Cmd": ["/bin/privileges"]},
    f"{STAGING}hostnet-nginx-amd64:latest": {"Cmd": ["sh", "-c", SERVER.format(port=12003)]},
    f"{STAGING}test-image-user-uid:latest": {"User": "1002"},
    f"{STAGING}test-image-user-username:latest": {"User": "www-data"},
    f"{STAGING}test-image-user-uid-group:latest": {"User": "1003:users"},
    f"{STAGING}test-image-user-username-group:latest": {"User": "www-data:100"},
    f"{STAGING}test-image-predefined-group:latest": {"User": "default-user"},
}


def case_name(test: dict[str, Any]) -> str:
    words = [*(test.get("ContainerHierarchyTexts") or []), test["LeafNodeText"]]
    return " ".join(word.replace("[k8s.io] ", "") for word in words if word)


def run(table: Table, only: str = "") -> None:
    source = install.module(install.CRI_TOOLS)
    critest = install.build(source, ["go", "test", "-c"], install.BUILT / "critest", "./cmd/critest")
    with containerd.daemon(IMAGES) as here, tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        (folder / "images.yaml").write_text(f"defaultTestContainerImage: {containerd.IMAGE}\n")
        report = folder / "report.json"
        command = [
            str(critest), "-runtime-endpoint", f"unix://{here.socket}", "-runtime-handler", "lind", "-test-images-file", str(folder / "images.yaml"),
            "-ginkgo.json-report", str(report), "-ginkgo.no-color", "-ginkgo.timeout", f"{SECONDS}s",
        ]
        if only:
            command += ["-ginkgo.focus", only]
        with (install.BUILT / "critest.log").open("wb") as log:
            status = subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log, check=False, timeout=SECONDS + 120).returncode
        note(table, report, status, bool(only))


def note(table: Table, report: Path, status: int, selected: bool) -> None:
    """Notes what the report of a run has, and whether the run was one."""
    if not report.exists():
        table.add(SUITE, "report", f"critest wrote none, and ended with status {status}: see {install.BUILT / 'critest.log'}")
        return
    passed = failed = 0
    for test in json.loads(report.read_text())[0]["SpecReports"] or []:
        failure = test.get("Failure", {}).get("Message", "")
        if test["LeafNodeType"] != "It":
            # Such a node runs before or after the whole suite.
            if test["State"] not in ("passed", "skipped"):
                failed += 1
                table.add(SUITE, test["LeafNodeType"], failure or test["State"])
            continue
        name = case_name(test)
        if test["State"] in ("skipped", "pending"):
            if not selected:
                table.skip(SUITE, name, failure or "critest itself skips it")
            continue
        passed += test["State"] == "passed"
        failed += test["State"] != "passed"
        table.add(SUITE, name, None if test["State"] == "passed" else failure or test["State"])
    # A part of the cases may be one that is known to fail.
    if not passed and not (selected and failed):
        table.add(SUITE, "all", f"no case passed; critest ended with status {status}")
    elif status and not failed:
        table.add(SUITE, "all", f"critest ended with status {status}, and its report has no failure")
