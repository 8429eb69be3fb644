#!/usr/bin/env python3
"""Release files for an index: the source distribution and a wheel for each architecture.

``make release`` writes to release/, for the commit that is checked out:

- the source distribution, made by the PEP 517 hook from a clean export of the commit;
- the wheels, which tools/wheels.py builds and checks in the unpacked source distribution;
- a CycloneDX bill of materials, and SHA256SUMS of all files.

The folder is removed if a check fails: each file has the one version of pyproject.toml, the index
knows every classifier, twine accepts the descriptions, and the wheel for this machine installs into
a fresh environment from these files alone and passes tools/smoke.py. The same commit gives the same
source distribution, byte for byte, since all times in it are the time of the commit.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import importlib.metadata
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import time
import uuid
import zipfile
from datetime import datetime, timezone
from email.message import Message
from email.parser import Parser
from pathlib import Path
from typing import Any

from wheels import ARCHITECTURES, kernel_images, platform_tag, run

ROOT = Path(__file__).resolve().parents[1]
RELEASE = ROOT / "release"
WORK = ROOT / "build" / "release"
SUMS = "SHA256SUMS"

# Licences of the linked Go modules, read from their texts. A new module stops the release until
# its licence is read: it must be compatible with the GPL.
MODULES = {
    "github.com/JohnCGriffin/overflow": "MIT",
    "github.com/andybalholm/brotli": "MIT",
    "github.com/apache/arrow/go/v15": "Apache-2.0",
    "github.com/apache/thrift": "Apache-2.0",
    "github.com/go-python/gopy": "BSD-3-Clause",
    "github.com/goccy/go-json": "MIT",
    "github.com/golang/snappy": "BSD-3-Clause",
    "github.com/google/flatbuffers": "Apache-2.0",
    "github.com/klauspost/compress": "Apache-2.0 AND BSD-3-Clause AND MIT",
    "github.com/klauspost/cpuid/v2": "MIT",
    "github.com/mumax/3": "GPL-3.0-or-later",
    "github.com/pierrec/lz4/v4": "BSD-3-Clause",
    "github.com/ulikunitz/xz": "BSD-3-Clause",
    "github.com/zeebo/xxh3": "BSD-2-Clause",
    "golang.org/x/exp": "BSD-3-Clause",
    "golang.org/x/sys": "BSD-3-Clause",
    "golang.org/x/xerrors": "BSD-3-Clause",
}
# Packages from PyPI that build or check the files: licence and use.
TOOLS = {
    "PyBindGen": ("LGPL-2.1-only", "writes the C half of the extension"),
    "auditwheel": ("MIT", "checks the wheels and names their platform"),
    "nvidia-cuda-nvrtc-cu12": (None, "compiles the kernels"),
    "nvidia-cuda-runtime-cu12": (None, "has the declarations of cuda.h; nothing of it is linked"),
    "setuptools": ("MIT", "packs the files"),
    "ziglang": ("MIT", "compiles and links C; brings the compiler's own runtime routines"),
}

# ---- the commit ------------------------------------------------------------------------------


def git(*arguments: str) -> str:
    command = ["git", "-C", str(ROOT), *arguments]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"release: git {arguments[0]} failed: {done.stderr.strip()}")
    return done.stdout


def clean_commit() -> tuple[str, int]:
    """Returns the commit and its time; SystemExit if the tree has anything else."""
    changed = git("status", "--porcelain").rstrip("\n")
    if changed:
        raise SystemExit(
            "release: expected a clean tree, got changes that are not in a commit; commit or "
            f"remove them:\n{changed}"
        )
    commit, seconds = git("log", "-1", "--format=%H %ct").split()
    return commit, int(seconds)


def check_tag(tag: str, version: str, commit: str) -> None:
    """Raises SystemExit if the tag names another version or commit, or CHANGELOG.md lacks it."""
    if tag != f"v{version}":
        raise SystemExit(
            f"release: tag: expected v{version}, as pyproject.toml has it, got {tag}; change the "
            "version, or tag another commit"
        )
    tagged = git("rev-parse", f"refs/tags/{tag}^{{commit}}").strip()
    if tagged != commit:
        raise SystemExit(f"release: tag: expected {tag} at {commit}, got {tagged}; check it out")
    if not re.search(rf"(?m)^## {re.escape(version)}\b", (ROOT / "CHANGELOG.md").read_text()):
        raise SystemExit(
            f"release: CHANGELOG.md: expected a heading ## {version}, got none; name the release"
        )


# ---- the source distribution -----------------------------------------------------------------


def normalize(archive: Path, output: Path, seconds: int) -> None:
    """Copies the archive without the traces of a machine: users, modes, times, order."""
    with (
        tarfile.open(archive) as source,
        open(output, "wb") as file,
        # The name and the time in gzip's header are left out.
        gzip.GzipFile("", "wb", fileobj=file, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as target,
    ):
        for member in sorted(source.getmembers(), key=lambda member: member.name):
            clean = tarfile.TarInfo(member.name)
            clean.type, clean.size, clean.mtime = member.type, member.size, seconds
            clean.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
            target.addfile(clean, source.extractfile(member) if member.isfile() else None)


def check_sdist(archive: Path, tracked: set[str]) -> None:
    """Raises SystemExit if the files are not those of git and the ones that setuptools writes."""
    with tarfile.open(archive) as tar:
        names = {name for item in tar if not item.isdir() for name in [item.name.partition("/")[2]]}
    written = {name for name in names if name in ("PKG-INFO", "setup.cfg")}
    written |= {name for name in names if name.startswith("python/pygsampler.egg-info/")}
    if names - written != tracked:
        missing, extra = sorted(tracked - names), sorted(names - written - tracked)
        raise SystemExit(
            f"release: sdist: expected all that git has and nothing else, got {missing[:9]} "
            f"missing and {extra[:9]} too many; see MANIFEST.in"
        )


def make_sdist(commit: str, seconds: int, log: Path) -> Path:
    """Returns the source distribution in release/, which is made from an export of the commit."""
    export, folder = WORK / "export", WORK / "sdist"
    export.mkdir()
    archive = WORK / "export.tar"
    git("archive", "--format=tar", f"--output={archive}", commit)
    run(["tar", "-xpf", str(archive), "-C", str(export)], log, os.environ)
    code = "import setup, sys; setup.build_sdist(sys.argv[1])"
    run([sys.executable, "-W", "ignore", "-c", code, str(folder)], log, os.environ, export)
    (hooked,) = folder.glob("*.tar.gz")
    normalize(hooked, RELEASE / hooked.name, seconds)
    check_sdist(RELEASE / hooked.name, set(git("ls-files", "-z").rstrip("\0").split("\0")))
    return RELEASE / hooked.name


# ---- the wheels ------------------------------------------------------------------------------


def make_wheels(sdist: Path, architectures: list[str], seconds: int, log: Path) -> dict[str, Any]:
    """Moves the wheels that the source distribution builds to release/; returns their report."""
    run(["tar", "-xpf", str(sdist), "-C", str(WORK)], log, os.environ)
    source = WORK / sdist.name.removesuffix(".tar.gz")
    (source / "build").mkdir()
    # Both caches go by the digests of the sources: images of kernels and parts of zig's C library
    # from other builds save minutes and are the same bytes.
    for cache in ("kernels", "zig"):
        (ROOT / "build" / cache).mkdir(exist_ok=True)
        (source / "build" / cache).symlink_to(ROOT / "build" / cache)
    env = {**os.environ, "SOURCE_DATE_EPOCH": str(seconds), "PYGSAMPLER_ARCHITECTURES": ""}
    run([sys.executable, "tools/wheels.py", *architectures], log, env, source)
    report: dict[str, Any] = json.loads((source / "wheelhouse" / "wheels.json").read_text())
    for wheel in report["wheels"]:
        shutil.move(source / "wheelhouse" / wheel["file"], RELEASE / wheel["file"])
    return report


# ---- checks of the files ---------------------------------------------------------------------


def metadata(file: Path) -> Message:
    """Returns METADATA of a wheel or PKG-INFO of a source distribution."""
    if file.suffix == ".whl":
        with zipfile.ZipFile(file) as archive:
            (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
            text = archive.read(name)
    else:
        with tarfile.open(file) as tar:
            member = tar.extractfile(f"{file.name.removesuffix('.tar.gz')}/PKG-INFO")
            text = member.read() if member else b""
    return Parser().parsestr(text.decode())


def check_files(folder: Path, version: str, architectures: list[str]) -> list[Path]:
    """Returns the files for the index; SystemExit if others are there, or other versions."""
    expected = [
        f"pygsampler-{version}.tar.gz",
        *(
            f"pygsampler-{version}-cp310-abi3-{platform_tag(architecture)}.whl"
            for architecture in sorted(architectures)
        ),
    ]
    names = sorted(file.name for file in folder.iterdir())
    if names != sorted(expected):
        raise SystemExit(
            f"release: expected {', '.join(sorted(expected))} in {folder.name}/, got "
            f"{', '.join(names)}"
        )
    files = [folder / name for name in expected]
    versions = {file.name: metadata(file)["Version"] for file in files}
    if set(versions.values()) != {version}:
        raise SystemExit(f"release: expected files of version {version}, got {versions}")
    return files


def check_classifiers(names: list[str]) -> None:
    """Raises SystemExit if the index would refuse a classifier."""
    from trove_classifiers import classifiers, deprecated_classifiers

    unknown = sorted(set(names) - set(classifiers) | set(names) & set(deprecated_classifiers))
    if unknown:
        raise SystemExit(f"release: expected classifiers that the index knows, got {unknown}")


def try_install(version: str, log: Path) -> str:
    """Returns the digest that tools/smoke.py prints after an installation without an index.

    Dependencies are downloaded into a folder first, and installed from there.
    """
    folder, target = WORK / "dependencies", WORK / "env"
    (wheel,) = RELEASE.glob(f"*_{platform.machine()}.whl")
    run([sys.executable, "-m", "venv", str(target)], log, os.environ)
    python = str(target / "bin" / "python")
    wanted = [python, "-m", "pip", "download", "-q", "--only-binary", ":all:", "-d", str(folder)]
    run([*wanted, f"{wheel}[cli]", "numpy"], log, os.environ)
    # pip copies pygsampler there as well, but it has to come from the release.
    (folder / wheel.name).unlink(missing_ok=True)
    # With no compiler and no Go on PATH, the source distribution would not install.
    env = {"PATH": str(target / "bin"), "HOME": str(WORK)}
    install = [python, "-m", "pip", "install", "-q", "--no-index", "--no-cache-dir"]
    links = [f"--find-links={RELEASE}", f"--find-links={folder}"]
    run([*install, *links, f"pygsampler[cli]=={version}", "numpy"], log, env, WORK)
    smoke = [python, "-W", "error", str(ROOT / "tools" / "smoke.py")]
    return str(json.loads(run(smoke, log, env, WORK).splitlines()[-1])["sample"])


# ---- the bill of materials -------------------------------------------------------------------


def extension(wheel: Path) -> bytes:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".so"))
        return archive.read(name)


def linked(content: bytes) -> tuple[str, dict[str, tuple[str, str]]]:
    """Returns the version of Go, and version and checksum of each linked module.

    The extension holds them as the text of Go's runtime/debug.BuildInfo, which `go version -m`
    prints, too.
    """
    go = re.search(rb"(?s)\xff Go buildinf:.{18}.go([0-9.]+)", content)
    modules = {
        path.decode(): (version.decode(), digest.decode())
        for path, version, digest in re.findall(rb"\ndep\t(\S+)\t(\S+)\t(h1:\S+)", content)
    }
    if go is None or not modules:
        raise SystemExit("release: expected an extension with Go's build info, got one without")
    if unknown := sorted(set(modules) - set(MODULES)):
        raise SystemExit(
            f"release: expected modules whose licence is known, got {unknown}; read it, and add "
            "them to MODULES of tools/release.py"
        )
    return go[1].decode(), modules


def licensed(licence: str | None) -> list[dict[str, Any]]:
    if licence is None:
        return [{"license": {"name": "NVIDIA CUDA Toolkit EULA"}}]
    if " " in licence:
        return [{"expression": licence}]
    return [{"license": {"id": licence}}]


def hashed(content: bytes) -> list[dict[str, str]]:
    return [{"alg": "SHA-256", "content": hashlib.sha256(content).hexdigest()}]


def properties(**values: str) -> list[dict[str, str]]:
    return [{"name": f"pygsampler:{name}", "value": value} for name, value in values.items()]


def linked_components(wheels: dict[str, Path]) -> list[dict[str, Any]]:
    """Returns Go's standard library and the modules, each with the architectures that link it."""
    where: dict[tuple[str, str, str], list[str]] = {}
    for architecture, wheel in sorted(wheels.items()):
        go, modules = linked(extension(wheel))
        where.setdefault(("std", go, ""), []).append(architecture)
        for path, (version, digest) in modules.items():
            where.setdefault((path, version, digest), []).append(architecture)
    return [
        {
            "type": "library",
            "bom-ref": f"pkg:golang/{path}@{version}",
            "purl": f"pkg:golang/{path}@{version}",
            "name": path,
            "version": version,
            "scope": "required",
            "licenses": licensed(MODULES.get(path, "BSD-3-Clause")),
            "properties": properties(
                role="linked", architectures=" ".join(names), **({"sum": digest} if digest else {})
            ),
        }
        for (path, version, digest), names in sorted(where.items())
    ]


def project_components(wheels: dict[str, Path], version: str, licence: str) -> list[dict[str, Any]]:
    """Returns the data set and the kernels, which belong to the project."""
    kernels: set[str] = set()
    images: dict[str, str] = {}
    for architecture, wheel in sorted(wheels.items()):
        names = kernel_images(extension(wheel))
        kernels |= {name.partition(".")[0] for name in names}
        gpus = {name.partition(".")[2] for name in names}
        order = sorted(
            gpus, key=lambda gpu: (not gpu.startswith("sm_"), int(gpu.partition("_")[2]))
        )
        images[f"images:{architecture}"] = " ".join(order)
    shared = next(iter(wheels.values()))
    with zipfile.ZipFile(shared) as archive:
        graph = archive.read("pygsampler/datasets/debian.npz")
    return [
        {
            "type": "data",
            "bom-ref": "debian.npz",
            "name": "debian.npz",
            "version": version,
            "description": "the packages of Debian 12 as a graph; origin: docs/guide/debian.md",
            "licenses": licensed(licence),
            "hashes": hashed(graph),
            "data": [{"type": "dataset", "name": "pygsampler/datasets/debian.npz"}],
            "properties": properties(role="data"),
        },
        {
            "type": "library",
            "bom-ref": "kernels",
            "name": "kernels",
            "version": version,
            "description": f"machine code for GPUs of {', '.join(sorted(kernels))}",
            "licenses": licensed(licence),
            "properties": properties(role="kernels", **images),
        },
    ]


def tool_components() -> list[dict[str, Any]]:
    """Returns the packages that build and check the files; the files hold none of them."""
    components = []
    for name, (licence, use) in sorted(TOOLS.items()):
        version = importlib.metadata.version(name)
        purl = f"pkg:pypi/{name.lower()}@{version}"
        components.append(
            {
                "type": "application",
                "bom-ref": purl,
                "purl": purl,
                "name": name,
                "version": version,
                "scope": "excluded",
                "description": use,
                "licenses": licensed(licence),
                "properties": properties(role="build tool"),
            }
        )
    return components


def requirement_components(message: Message) -> list[dict[str, Any]]:
    """Returns what pip installs with pygsampler; extras are the user's choice and not listed."""
    needed = [text for text in message.get_all("Requires-Dist", []) if ";" not in text]
    names = {re.split(r"[^\w.-]", text)[0]: text for text in needed}
    return [
        {
            "type": "library",
            "bom-ref": f"pkg:pypi/{name.lower()}",
            "purl": f"pkg:pypi/{name.lower()}",
            "name": name,
            "scope": "required",
            "properties": properties(role="install requirement", range=text),
        }
        for name, text in sorted(names.items())
    ]


def bill(files: list[Path], commit: str, seconds: int) -> dict[str, Any]:
    """Returns the bill of materials of the files, a CycloneDX document."""
    message = metadata(files[0])
    version, licence = message["Version"], message["License"]
    purl = f"pkg:pypi/pygsampler@{version}"
    wheels = {
        architecture: file
        for file in files[1:]
        for architecture in ARCHITECTURES
        if file.name.endswith(f"{platform_tag(architecture)}.whl")
    }
    linked_parts = linked_components(wheels)
    project_parts = project_components(wheels, version, licence)
    requirements = requirement_components(message)
    contents = [
        {
            "type": "file",
            "bom-ref": file.name,
            "name": file.name,
            "hashes": hashed(file.read_bytes()),
        }
        for file in files
    ]
    shipped = [part["bom-ref"] for part in [*linked_parts, *project_parts, *requirements]]
    sums = " ".join(item["hashes"][0]["content"] for item in contents)
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, f'{purl} {sums}')}",
        "version": 1,
        "metadata": {
            "timestamp": datetime.fromtimestamp(seconds, timezone.utc).isoformat(),
            "component": {
                "type": "library",
                "bom-ref": purl,
                "purl": purl,
                "name": "pygsampler",
                "version": version,
                "description": message["Summary"],
                "licenses": licensed(licence),
                "components": contents,
                "properties": properties(commit=commit),
            },
        },
        "components": [*linked_parts, *project_parts, *requirements, *tool_components()],
        "dependencies": [
            {"ref": purl, "dependsOn": shipped},
            *({"ref": part} for part in shipped),
        ],
    }


def write_bill(document: dict[str, Any], file: Path) -> None:
    """Writes the document; SystemExit if CycloneDX's schema refuses it."""
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator

    text = json.dumps(document, indent=2) + "\n"
    if error := JsonStrictValidator(SchemaVersion.V1_6).validate_str(text):
        raise SystemExit(f"release: expected a bill that CycloneDX's schema accepts, got {error}")
    file.write_text(text)


def write_sums(folder: Path) -> None:
    """Writes SHA256SUMS, which `sha256sum --check` reads, for all files of the folder."""
    lines = [
        f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n"
        for file in sorted(folder.iterdir())
        if file.name != SUMS
    ]
    (folder / SUMS).write_text("".join(lines))


# ---- the whole -------------------------------------------------------------------------------


def make(tag: str | None, architectures: list[str]) -> None:
    start = time.monotonic()

    def say(text: str) -> None:
        print(f"{time.monotonic() - start:5.0f} s  {text}", flush=True)

    commit, seconds = clean_commit()
    shutil.rmtree(WORK, ignore_errors=True)
    WORK.mkdir(parents=True)
    log = WORK / "log"
    sdist = make_sdist(commit, seconds, log)
    version = metadata(sdist)["Version"]
    if tag:
        check_tag(tag, version, commit)
    say(f"{sdist.name}, {sdist.stat().st_size / 2**20:.2f} MiB; building the wheels from it")
    report = make_wheels(sdist, architectures, seconds, log)
    for wheel in report["wheels"]:
        say(f"{wheel['file']}, {wheel['size'] / 2**20:.2f} MiB; asks for glibc {wheel['glibc']}")
    files = check_files(RELEASE, version, architectures)
    check_classifiers(metadata(sdist).get_all("Classifier", []))
    run([sys.executable, "-m", "twine", "check", "--strict", *map(str, files)], log, os.environ)
    say("twine accepts all files")
    if platform.machine() in architectures:
        sample = try_install(version, log)
        if sample not in {wheel["sample"] for wheel in report["wheels"]}:
            raise SystemExit(f"release: expected the sample of wheels.json, got {sample}")
        say(f"a fresh environment installs these files alone, and samples {sample}")
    document = bill(files, commit, seconds)
    write_bill(document, RELEASE / f"pygsampler-{version}.cdx.json")
    write_sums(RELEASE)
    say(f"a bill of {len(document['components'])} components; all of it is in {RELEASE.name}/")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--tag", help="refuse another version or commit than that of the tag")
    parser.add_argument(
        "architectures", nargs="*", metavar="ARCH", help="x86_64, aarch64; both if none"
    )
    arguments = parser.parse_args()
    architectures = arguments.architectures or list(ARCHITECTURES)
    if unknown := sorted(set(architectures) - set(ARCHITECTURES)):
        raise SystemExit(
            f"release: ARCH: expected {' or '.join(ARCHITECTURES)}, got {', '.join(unknown)}"
        )
    clean_commit()  # before the files of the last release go
    shutil.rmtree(RELEASE, ignore_errors=True)
    RELEASE.mkdir()
    try:
        make(arguments.tag, architectures)
    except BaseException:
        shutil.rmtree(RELEASE, ignore_errors=True)
        raise


if __name__ == "__main__":
    main()
