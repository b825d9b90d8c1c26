"""Images: what `lind-boot image build` makes, loaded and run by podman, buildah and containerd, and what an image may not bring."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import Any

from engines import containerd, docker, podman, run
from world import OCI, TOP, Failed, Skipped, World, ends, equals

BOOT = TOP / "target" / "release" / "lind-boot"
# A module for WASI that calls proc_exit(7).
WASI = bytes.fromhex(
    "0061736d0100000001080260017f0060000002240116776173695f736e617073686f745f70726576696577310970726f635f657869740000"
    "030201010503010001071302066d656d6f72790200065f737461727400010a08010600410710000b"
)


def build(*words: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
    return run(BOOT, "image", "build", *words, **options)


def blob(layout: Path, digest: str) -> bytes:
    """A blob, whose name must be its hash."""
    data = (layout / "blobs" / digest.replace(":", "/")).read_bytes()
    equals("sha256:" + hashlib.sha256(data).hexdigest(), digest)
    return data


def manifest(layout: Path) -> dict[str, Any]:
    """The only manifest of a layout."""
    index = json.loads((layout / "index.json").read_text())
    equals(len(index["manifests"]), 1)
    return json.loads(blob(layout, index["manifests"][0]["digest"]))


def files(world: World, name: str) -> Path:
    """A directory with a program, a link and a text."""
    root = world.folder / name
    (root / "bin").mkdir(parents=True)
    (root / "etc").mkdir()
    shutil.copy(world.program.with_suffix(".wasm"), root / "bin" / "guest.wasm")
    shutil.copy(world.program, root / "bin" / "guest.cwasm")
    (root / "bin/again").symlink_to("guest.wasm")
    (root / "etc/passwd").write_text("root:x:0:0::/root:/bin/sh\nuser:x:1000:1000::/home/user:/bin/sh\n")
    (root / ("long" * 40)).write_text("long")
    return root


def layouts_are_reproducible(world: World) -> None:
    """The same contents give the same bytes, whatever times, modes and orders of directories are."""
    made = []
    for number in range(2):
        root = files(world, f"same{number}")
        os.utime(root / "etc/passwd", (1000 * number, 1000 * number))
        os.chmod(root / "etc/passwd", 0o644 if number else 0o600)
        layout, archive = world.folder / f"layout{number}", world.folder / f"archive{number}.tar"
        ends(build("-t", "one/two:3", "--layout", layout, root), 0)
        ends(build("-t", "one/two:3", "-o", archive, root), 0)
        with tarfile.open(archive) as tar:
            equals(json.load(tar.extractfile("index.json") or io.BytesIO()), json.loads((layout / "index.json").read_text()))
        made.append(archive.read_bytes())
        if number == 0:
            contents(layout)
    equals(made[0] == made[1], True, "the archives are the same")
    equals([path.name for path in world.folder.glob(".archive*")], [], "left behind")
    ends(build("-t", "x", "--layout", world.folder / "layout0", world.folder / "same0"), 125, "exists already")


def contents(layout: Path) -> None:
    found = manifest(layout)
    config = json.loads(blob(layout, found["config"]["digest"]))
    equals((config["os"], config["architecture"], "annotations" in found), ("linux", "amd64", False))
    data = gzip.decompress(blob(layout, found["layers"][0]["digest"]))
    equals(config["rootfs"]["diff_ids"], ["sha256:" + hashlib.sha256(data).hexdigest()])
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        names = tar.getnames()
        equals(names, sorted(names))
        equals("bin/guest.cwasm" in names, False, "compiled code of this user")
        equals({(member.uid, member.gid, member.mtime) for member in tar}, {(0, 0, 0)})
        equals((tar.getmember("etc/passwd").mode, tar.getmember("bin/again").linkname), (0o644, "guest.wasm"))


def recipes_and_bases(world: World) -> None:
    root = files(world, "recipe")
    (world.folder / "more.txt").write_text("more")
    base, recipe, layout = world.folder / "base.tar", world.folder / "recipe.toml", world.folder / "on-base"
    ends(build("-t", "base", "-o", base, root), 0)
    recipe.write_text("""
base = "base.tar"
copy = [{ from = "more.txt", to = "/opt/deep/" }]
entrypoint = ["/bin/guest.wasm", "echo"]
cmd = ["hello"]
user = "1000"
workdir = "/opt"
env = { GREETING = "a=b" }
labels = { who = "tests" }
annotations = { "org.example" = "yes" }
""")
    ends(build("-t", "on-base", "--layout", layout, "--platform", "linux/amd64", recipe), 0)
    found = manifest(layout)
    config = json.loads(blob(layout, found["config"]["digest"]))
    equals((len(found["layers"]), len(config["rootfs"]["diff_ids"]), found["annotations"]), (2, 2, {"org.example": "yes"}))
    of_program = config["config"]
    equals([of_program[key] for key in ("Entrypoint", "Cmd", "User", "WorkingDir", "Labels")],
           [["/bin/guest.wasm", "echo"], ["hello"], "1000", "/opt", {"who": "tests"}])
    equals("GREETING=a=b" in of_program["Env"] and any(text.startswith("PATH=") for text in of_program["Env"]), True)
    with tarfile.open(fileobj=io.BytesIO(gzip.decompress(blob(layout, found["layers"][1]["digest"])))) as tar:
        equals(tar.getnames(), ["opt", "opt/deep", "opt/deep/more.txt"])
    # A base whose layer was changed is refused.
    changed = world.folder / "changed"
    ends(build("-t", "changed", "--layout", changed, root), 0)
    layer = changed / "blobs" / manifest(changed)["layers"][0]["digest"].replace(":", "/")
    layer.write_bytes(layer.read_bytes()[:-1] + b"x")
    recipe.write_text('base = "changed"\n')
    ends(build("-t", "x", "-o", world.folder / "x.tar", recipe), 125, "is not what its name says")
    for settings in ([], "text", {"rootfs": 5}, {"rootfs": {"diff_ids": []}, "config": 5, "history": 5}):
        strange(changed, settings)
        done = build("-t", "x", "-o", world.folder / "x.tar", recipe)
        equals(done.returncode, 125, f"settings {settings}: {done.stderr}")
    equals((world.folder / "x.tar").exists(), False)


def strange(layout: Path, settings: object) -> None:
    """Makes a layout of an image without layers that has such settings."""
    for path in (layout / "blobs/sha256").iterdir():
        path.unlink()

    def put(value: object, kind: str) -> dict[str, Any]:
        data = json.dumps(value).encode()
        name = hashlib.sha256(data).hexdigest()
        (layout / "blobs/sha256" / name).write_bytes(data)
        return {"mediaType": f"application/vnd.oci.image.{kind}.v1+json", "digest": f"sha256:{name}", "size": len(data)}

    described = put({"schemaVersion": 2, "config": put(settings, "config"), "layers": []}, "manifest")
    (layout / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": [described]}))


def mistakes_are_said(world: World) -> None:
    root, recipe = files(world, "mistakes"), world.folder / "mistakes.toml"
    recipe.write_text("entrypiont = ['x']\n")
    ends(build("-t", "x", recipe), 125, "mistakes.toml", "entrypiont")
    recipe.write_text("copy = [{ from = 'nowhere', to = '/' }]\n")
    ends(build("-t", "x", recipe), 125, "nowhere")
    for tag in ("Upper", "a b", "x:", "../x"):
        ends(build("-t", tag, root), 125, "--tag")
    ends(build("-t", "x", "--platform", "linux", root), 125, "--platform")
    ends(build("-t", "x", "--artifact", world.program.with_suffix(".wasm")), 125, "imports lind.", "make an image")
    (root / "bin/alone.cwasm").write_bytes(b"\x7fELF")
    ends(build("-t", "x", root, cwd=world.folder), 125, "alone.cwasm", "alone.wasm")
    (root / "bin/alone.cwasm").unlink()
    os.mkfifo(root / "fifo")
    ends(build("-t", "x", root, cwd=world.folder), 125, "fifo", "not a file")
    equals([path.name for path in world.folder.glob(".x*")] + [path.name for path in world.folder.glob("x.tar")], [])


def podman_loads_and_runs(world: World) -> None:
    root, archive, recipe = files(world, "podman"), world.folder / "podman.tar", world.folder / "podman.toml"
    recipe.write_text('copy = [{ from = "podman", to = "/" }]\nentrypoint = ["/bin/guest.wasm"]\ncmd = ["echo", "hello"]\nenv = { A = "b" }\n')
    ends(build("-t", "lind/guest:1", "-o", archive, recipe), 0)
    with podman(world) as engine:
        engine.load(archive)
        equals(engine("run", "--rm", "--network=none", "lind/guest:1").stdout, "hello\n")
        equals(engine("run", "--rm", "--network=none", "lind/guest:1", "exit", "5").returncode, 5)
        # An image for the platform of other runtimes runs, too, with a warning of podman.
        ends(build("-t", "lind/wasi", "-o", archive, "--platform", "wasi/wasm", recipe), 0)
        engine.load(archive)
        equals(engine("run", "--rm", "--network=none", "lind/wasi").stdout, "hello\n")
        about = json.loads(ends(engine("image", "inspect", "lind/wasi"), 0))[0]
        equals((about["Os"], about["Architecture"], about["Annotations"]), ("wasi", "wasm", {"module.wasm.image/variant": "compat"}))
    equals(root.exists(), True)


def an_artifact_becomes_an_image(world: World) -> None:
    """A module alone, as other runtimes exchange it: its layout, and the image that is made of it."""
    module, layout, archive = world.folder / "seven.wasm", world.folder / "artifact", world.folder / "artifact.tar"
    module.write_bytes(WASI)
    ends(build("-t", "seven", "--artifact", "--layout", layout, module), 0)
    found = manifest(layout)
    equals((found["config"]["mediaType"], [layer["mediaType"] for layer in found["layers"]]), ("application/vnd.wasm.config.v0+json", ["application/wasm"]))
    config = json.loads(blob(layout, found["config"]["digest"]))
    equals((config["os"], config["architecture"], config["layerDigests"]), ("wasip1", "wasm", [found["layers"][0]["digest"]]))
    equals(blob(layout, found["layers"][0]["digest"]), WASI)
    ends(build("-t", "seven", "--artifact", "-o", archive, module), 0)
    for source in (layout, archive, module):
        ends(build("-t", "seven", "-o", world.folder / "seven.tar", source), 0)
        with podman(world) as engine:
            engine.load(world.folder / "seven.tar")
            equals(engine("run", "--rm", "--network=none", "seven").returncode, 7, f"made of {source.name}")
    bundle_of_it(world, layout)
    # An artifact whose module was changed is refused.
    broken = world.folder / "broken"
    shutil.copytree(layout, broken)
    (broken / "blobs" / found["layers"][0]["digest"].replace(":", "/")).write_bytes(b"other")
    ends(build("-t", "x", "-o", world.folder / "x.tar", broken), 125, "is not what its name says")


def bundle_of_it(world: World, artifact: Path) -> None:
    """lind-oci runs what umoci makes of the image, without an engine."""
    layout, bundle = world.folder / "bundled", world.folder / "umoci"
    ends(build("-t", "seven", "--layout", layout, artifact), 0)
    if not shutil.which("umoci"):
        print("not tested: a bundle of an artifact, as umoci is missing: apt-get install umoci")
        return
    ends(run("umoci", "unpack", "--image", f"{layout}:seven:latest", bundle), 0)
    config = json.loads((bundle / "config.json").read_text())
    config["process"]["terminal"] = False
    (bundle / "config.json").write_text(json.dumps(config))
    ends(world.oci("run", "--bundle", bundle, "umoci"), 7)


DOCKERFILE = """FROM lind/guest:1
RUN ["/bin/guest.wasm", "look", "/etc"]
ENTRYPOINT ["/bin/guest.wasm"]
CMD ["look", "/etc/made", "/etc/nothing"]
"""


def builds_run_their_steps(world: World) -> None:
    """RUN of a Dockerfile, by podman and by buildah."""
    files(world, "build")
    recipe, archive = world.folder / "build.toml", world.folder / "build.tar"
    recipe.write_text('copy = [{ from = "build", to = "/" }]\n')
    ends(build("-t", "lind/guest:1", "-o", archive, recipe), 0)
    context = world.folder / "context"
    context.mkdir()
    (context / "Dockerfile").write_text(DOCKERFILE)
    with podman(world) as engine:
        engine.load(archive)
        ends(engine("build", "--network=none", "--isolation=oci", "-t", "built", context), 0)
        equals(engine("run", "--rm", "--network=none", "built").stdout, "rw -- \n")
        if not shutil.which("buildah"):
            raise Skipped("buildah is missing: apt-get install buildah; podman build was tested")
        of_storage = [*engine.options[:4], "--storage-driver", "vfs"]
        ends(run("buildah", *of_storage, "bud", "--runtime", OCI, "--isolation=oci", "--network=none", "-t", "by-buildah", context), 0)
        equals(engine("run", "--rm", "--network=none", "by-buildah").stdout, "rw -- \n")
        (context / "Dockerfile").write_text(DOCKERFILE.replace('"look", "/etc"]\n', '"exit", "3"]\n'))
        done = engine("build", "--network=none", "--isolation=oci", context)
        equals(done.returncode != 0, True, "a step that fails")


def forged_code_is_not_trusted(world: World) -> None:
    """Compiled code is native code. An image that brings its own, with the key and the list that would make it good, gains nothing."""
    forger, other = world.folder / "forger", world.folder / "other.c"
    other.write_text('#include <stdio.h>\nint main(void) { puts("forged"); return 0; }\n')
    env = os.environ | {"XDG_DATA_HOME": str(forger / "data"), "XDG_CACHE_HOME": str(forger / "cache")}
    (forger / "data").mkdir(parents=True)
    ends(run(TOP / "scripts/lind_compile", "-o", forger / "guest.cwasm", other, env=env), 0)
    bundle = world.bundle("echo", "honest")
    root = bundle / "rootfs"
    shutil.copy(forger / "guest.cwasm", root / "bin/guest.cwasm")
    # Where a user has the key and the cache, and where an installation has its code.
    for home in (root / "root", root):
        for place, source in ((".local/share/lind", forger / "data/lind"), (".cache/lind", forger / "cache/lind"), ("lib/lind/code", forger / "cache/lind")):
            if source.exists():
                shutil.copytree(source, home / place)
    name = hashlib.sha256(b"").hexdigest()
    (root / "lib/lind/code").mkdir(parents=True, exist_ok=True)
    (root / "lib/lind/code/list").write_text(f"{name} {name}\n")
    with world.container(bundle) as container:
        equals((container.wait(), container.text().replace("\r", "")), (0, "honest\n"), "the module beside it is run")
    (root / "bin/guest.wasm").unlink()
    world.number += 1
    done = world.oci("run", "--bundle", bundle, f"forged{world.number}")
    equals((done.returncode != 0, "forged" in done.stdout), (True, False), done.stderr)
    if "permission denied" not in done.stderr:
        raise Failed(f"says {done.stderr!r}")


def code_is_compiled_once(world: World) -> None:
    """The second container of a program, in a root of its own, finds the code of the first."""
    home = world.folder / "home"
    home.mkdir()
    env = os.environ | {"XDG_DATA_HOME": str(home / "data"), "XDG_CACHE_HOME": str(home / "cache")}
    kept = []
    for number in range(2):
        bundle = world.bundle("echo", "hello")
        (bundle / "rootfs/bin/guest.cwasm").unlink()
        done = world.oci("run", "--bundle", bundle, f"once{number}", env=env)
        equals((ends(done, 0), "compiling" in done.stderr and number == 1), ("hello\n", False))
        kept.append({path.name: path.stat().st_mtime_ns for path in (home / "cache/lind").glob("*.cwasm")})
    equals((kept[0] == kept[1], len(kept[0]) > 1), (True, True), "the code in the cache")


def the_tools_are_an_image(world: World) -> None:
    """The first layer of `make image` is reproducible, and runs."""
    if not all((TOP / "build/ports" / port).is_dir() for port in ("bash", "busybox")):
        raise Skipped("bash and busybox are not built: make tools")
    ends(run(TOP / "scripts/image.py", "base"), 0)
    archive = TOP / "build/images/base.tar"
    first = hashlib.sha256(archive.read_bytes()).hexdigest()
    ends(run(TOP / "scripts/image.py", "base"), 0)
    equals(hashlib.sha256(archive.read_bytes()).hexdigest(), first, "the same bytes again")
    ends(run(TOP / "scripts/image.py", "nothing"), 2, "no such layer", "base commands tools")
    with podman(world) as engine:
        engine.load(archive)
        done = engine("run", "--rm", "--network=none", "lind/base", "bash", "-c", "echo $PWD; ls -d /tmp; cat <<<'by bash'")
        equals((done.returncode, done.stdout), (0, "/root\n/tmp\nby bash\n"), done.stderr)


def containerd_imports_and_runs(world: World) -> None:
    files(world, "ctr")
    recipe, archive = world.folder / "ctr.toml", world.folder / "ctr.tar"
    recipe.write_text('copy = [{ from = "ctr", to = "/" }]\nentrypoint = ["/bin/guest.wasm"]\ncmd = ["echo", "hello"]\n')
    ends(build("-t", "lind/guest:1", "-o", archive, recipe), 0)
    with containerd(world) as ctr:
        ends(run(*ctr, "images", "import", "--snapshotter", "native", archive), 0)
        image = "docker.io/lind/guest:1"
        line = [*ctr, "run", "--rm", "--snapshotter", "native"]
        done = run(*line, "--runtime", "io.containerd.runc.v2", "--runc-binary", OCI, image, "one")
        equals((done.returncode, done.stdout), (0, "hello\n"), done.stderr)
        # The shim that finds lind-oci by PATH, as runtime-class-manager installs it.
        done = run(*line, "--runtime", "io.containerd.lind.v2", image, "two", "/bin/guest.wasm", "exit", "6")
        equals(done.returncode, 6, done.stderr)


def docker_loads_runs_and_builds(world: World) -> None:
    """docker with both of its builders: the older one uses the default runtime, and BuildKit the `runc` of its PATH."""
    files(world, "docker")
    recipe, archive, context = world.folder / "docker.toml", world.folder / "docker.tar", world.folder / "docker-context"
    recipe.write_text('copy = [{ from = "docker", to = "/" }]\nentrypoint = ["/bin/guest.wasm"]\ncmd = ["echo", "hello"]\n')
    ends(build("-t", "lind/guest:1", "-o", archive, recipe), 0)
    context.mkdir()
    (context / "Dockerfile").write_text(DOCKERFILE)
    with docker(world) as line:
        ends(run(*line, "load", "-i", archive), 0)
        equals(run(*line, "run", "--rm", "--network=none", "lind/guest:1").stdout, "hello\n")
        for kit in ("0", "1"):
            env = os.environ | {"DOCKER_BUILDKIT": kit}
            ends(run(*line, "build", "--no-cache", "--network=none", "-t", f"built{kit}", context, env=env), 0)
            equals(run(*line, "run", "--rm", "--network=none", f"built{kit}").stdout, "rw -- \n", f"DOCKER_BUILDKIT={kit}")


TESTS = [
    layouts_are_reproducible,
    recipes_and_bases,
    mistakes_are_said,
    podman_loads_and_runs,
    an_artifact_becomes_an_image,
    builds_run_their_steps,
    forged_code_is_not_trusted,
    code_is_compiled_once,
    the_tools_are_an_image,
    containerd_imports_and_runs,
    docker_loads_runs_and_builds,
]
