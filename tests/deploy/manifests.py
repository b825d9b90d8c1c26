"""The manifests: by the schemas of Kubernetes, and as kustomize reads them."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import kubernetes_validate
import nodes
import yaml
from tools import TOP, kustomize
from world import Failed, Skipped, equals

DEPLOY = TOP / "deploy"
# Both ends of what is in use.
VERSIONS = ("1.30", "1.37")
# Kinds that Kubernetes itself does not have: the keys of their spec, and those that must be there.
OTHERS = {
    "agents.x-k8s.io/v1beta1 Sandbox": ("operatingMode podTemplate service shutdownPolicy shutdownTime volumeClaimTemplates", "podTemplate"),
    "extensions.agents.x-k8s.io/v1beta1 SandboxTemplate": (
        "envVarsInjectionPolicy networkPolicy networkPolicyManagement podTemplate service volumeClaimTemplates volumeClaimTemplatesPolicy",
        "podTemplate",
    ),
    "extensions.agents.x-k8s.io/v1beta1 SandboxWarmPool": ("replicas sandboxTemplateRef updateStrategy", "sandboxTemplateRef"),
    "runtime.spinkube.dev/v1alpha1 Shim": (
        "containerdRuntimeOptions fetchStrategy nodeSelector rolloutStrategy runtimeClass",
        "fetchStrategy rolloutStrategy runtimeClass",
    ),
}


def documents(text: str) -> list[dict[str, Any]]:
    return [document for document in yaml.safe_load_all(text) if document]


def check(document: dict[str, Any], what: str) -> None:
    """Checks one object. Unknown keys are mistakes."""
    kind = f"{document['apiVersion']} {document['kind']}"
    if kind in OTHERS:
        known, needed = (set(words.split()) for words in OTHERS[kind])
        spec = set(document["spec"])
        if not needed <= spec <= known:
            raise Failed(f"{what}: spec has {sorted(spec)}, expected {sorted(known)} with {sorted(needed)}")
        template = document["spec"].get("podTemplate")
        if not template:
            return
        document = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, **template}
    for version in VERSIONS:
        try:
            kubernetes_validate.validate(document, version, strict=True)
        except kubernetes_validate.ValidationError as why:
            raise Failed(f"{what}: {kind}: {'.'.join(str(key) for key in why.path)}: {why.message}") from None


def manifests_follow_their_schemas(_: Path) -> None:
    files = [path for path in DEPLOY.rglob("*.yaml") if path.name != "kustomization.yaml"]
    for path in files:
        for document in documents(path.read_text()):
            check(document, str(path.relative_to(TOP)))
    equals(len(files) >= 5, True, "manifests")
    # The check sees mistakes.
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": {"containers": [{"name": "x", "imagee": "y"}]}}
    try:
        check(pod, "a pod with a mistake")
    except Failed:
        return
    raise Failed("a mistake in a pod is not seen")


def kustomizations_build(_: Path) -> None:
    program = kustomize()
    if not program:
        raise Skipped("there is no Go to build kustomize with: apt-get install golang")
    for folder, kinds, image in (
        (DEPLOY, {"RuntimeClass", "Namespace", "ServiceAccount", "DaemonSet"}, "lind-installer"),
        (DEPLOY / "agent-sandbox", {"SandboxTemplate", "SandboxWarmPool"}, "lind-sandboxd"),
    ):
        done = subprocess.run([program, "build", folder], capture_output=True, text=True, timeout=60, check=False)
        equals((done.returncode, done.stderr), (0, ""), str(folder))
        built = documents(done.stdout)
        equals({document["kind"] for document in built}, kinds)
        for document in built:
            check(document, f"{folder.name}, built")
        images = set(re.findall(r"image: (\S+)", done.stdout))
        equals(len(images) == 1 and images.pop().startswith(f"registry.example.org/{image}:"), True, f"the image of {folder.name}")


def table(name: str) -> dict[str, Any]:
    """A file for an engine, without the lines of a template."""
    text = (DEPLOY / name).read_text().replace("{{ .SystemdCgroup }}", "true")
    return tomllib.loads(re.sub(r"\{\{.*?\}\}", "", text))


def files_for_engines_agree(_: Path) -> None:
    for name, template, plugin in (
        ("containerd-1.7.toml", "k3s-config.toml.tmpl", "io.containerd.grpc.v1.cri"),
        ("containerd-2.toml", "k3s-config-v3.toml.tmpl", "io.containerd.cri.v1.runtime"),
    ):
        found = table(name)
        equals(found, table(template), template)
        equals([*found["plugins"]], [plugin])
        handler = found["plugins"][plugin]["containerd"]["runtimes"]["lind"]
        equals((handler["runtime_type"], handler["options"]["BinaryName"]), ("io.containerd.runc.v2", "/opt/lind/bin/lind-oci"))
        equals('{{ template "base" . }}' in (DEPLOY / template).read_text(), True, template)
    of_crio = table("crio-lind.conf")["crio"]["runtime"]["runtimes"]["lind"]
    equals(of_crio["runtime_path"], "/opt/lind/bin/lind-oci")
    # CRI-O drops a handler with names there that are not its own; it hands all others on.
    equals("allowed_annotations" in of_crio, False, "annotations for CRI-O")


def pods_of_the_installer_have_few_rights(_: Path) -> None:
    """Only what installs is privileged; the check reads some directories, without the sockets of engines."""
    sets = {one["metadata"]["name"]: one["spec"]["template"]["spec"] for one in documents((DEPLOY / "installer/daemon-set.yaml").read_text()) if one["kind"] == "DaemonSet"}
    equals(set(sets), {"lind-installer", "lind-check"})
    for name, pod in sets.items():
        for container in pod["containers"]:
            rights, mounts = container["securityContext"], container.get("volumeMounts", [])
            equals((rights["allowPrivilegeEscalation"], rights["readOnlyRootFilesystem"], rights["capabilities"]), (False, True, {"drop": ["ALL"]}), name)
            places = {volume["name"]: volume["hostPath"]["path"] for volume in pod["volumes"] if "hostPath" in volume}
            used = [mount for mount in mounts if mount["name"] in places]
            equals({(mount.get("readOnly"), mount.get("recursiveReadOnly"), mount.get("mountPropagation")) for mount in used} <= {(True, "IfPossible", None)}, True, name)
            equals([places[mount["name"]] for mount in used if re.match(r"/($|run|var/run|proc|dev)|/etc$", places[mount["name"]])], [], name)
            # Root may end any process of the node that it sees.
            equals(bool(pod.get("hostPID")) and (not rights.get("runAsNonRoot") or bool(used)), False, f"{name}: the node's processes")


def containerd_reads_its_file(folder: Path) -> None:
    """containerd of this machine takes the handler as the installer adds it to a short configuration, and keeps its own."""
    if not shutil.which("containerd"):
        raise Skipped("containerd is missing: apt-get install containerd")
    version = subprocess.run(["containerd", "--version"], capture_output=True, text=True, timeout=60, check=True).stdout
    is_second = " v2." in version or " 2." in version
    plugin = "io.containerd.cri.v1.runtime" if is_second else "io.containerd.grpc.v1.cri"
    config, lind = folder / "node/etc/containerd/config.toml", nodes.release(folder)
    config.parent.mkdir(parents=True)
    config.write_text(f"version = {3 if is_second else 2}\n")
    nodes.install("install", folder / "node", lind)
    done = subprocess.run(["containerd", "--config", config, "config", "dump"], capture_output=True, text=True, timeout=60, check=False)
    equals(done.returncode, 0, done.stderr)
    runtimes = tomllib.loads(done.stdout)["plugins"][plugin]["containerd"]["runtimes"]
    equals((set(runtimes) >= {"lind", "runc"}, runtimes["lind"]["options"]["BinaryName"]), (True, "/opt/lind/bin/lind-oci"))
    equals(runtimes["lind"]["options"]["SystemdCgroup"], False, "as runc has it by default")
    equals(runtimes["lind"]["pod_annotations"], ["run.lind.*"])


TESTS = [containerd_reads_its_file, manifests_follow_their_schemas, kustomizations_build, files_for_engines_agree, pods_of_the_installer_have_few_rights]
