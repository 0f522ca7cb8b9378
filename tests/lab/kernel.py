"""The kernel of the lab: Debian's own package, which is unpacked near the tests and never installed.

The machine boots an uncompressed vmlinux, which takes half the time of a bzImage without KVM. A small initramfs mounts
the host's root read-only. All other drivers are loaded from the unpacked package.
"""

from __future__ import annotations

import gzip
import lzma
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

META_PACKAGE = "linux-image-amd64"
XZ_MAGIC = b"\xfd7zXZ\x00"
# With these modules, the initramfs can read the host's files. All other modules are loaded from these files.
EARLY_MODULES = ("virtio_pci", "9pnet_virtio", "9p", "overlay")


class LabUnavailableError(Exception):
    """An error that states why the lab cannot be built on this machine."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """The files of a kernel. ``modules`` is the folder of one kernel version, as in /lib/modules."""

    image: Path
    initramfs: Path
    modules: Path


def get_kernel(cache: Path) -> Kernel:
    """Return the kernel from the cache. If the cache does not contain the kernel, download the package and unpack it
    into the cache.

    Raises:
        LabUnavailableError: A tool or the package is not available.
    """
    for tool in ("apt-get", "dpkg", "busybox", "depmod", "modprobe", "cpio"):
        if shutil.which(tool, path="/usr/sbin:/usr/bin:/sbin:/bin") is None:
            raise LabUnavailableError(f"'{tool}' is not installed")
    package = _versioned_package()
    folder = cache / package
    version = package.removeprefix("linux-image-")
    kernel = Kernel(
        image=folder / "vmlinux", initramfs=folder / "initramfs.gz", modules=folder / "root/lib/modules" / version
    )
    if not kernel.modules.exists() or not kernel.image.exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        _run(["apt-get", "download", "-qq", package], cwd=folder)
        archive = next(folder.glob("*.deb"))
        _run(["dpkg", "-x", str(archive), str(folder / "root")])
        archive.unlink()
        _run(["depmod", "-b", str(folder / "root"), version])
        compressed = (folder / "root/boot" / f"vmlinuz-{version}").read_bytes()
        start = compressed.find(XZ_MAGIC)
        kernel.image.write_bytes(lzma.LZMADecompressor().decompress(compressed[start:]))
    init = Path(__file__).parent / "guest/init"
    if not kernel.initramfs.exists() or kernel.initramfs.stat().st_mtime < init.stat().st_mtime:
        _build_initramfs(kernel, init, folder)
    return kernel


def _versioned_package() -> str:
    found = re.search(r"Depends: (linux-image-\S+)", _run(["apt-cache", "depends", META_PACKAGE]))
    if found is None:
        raise LabUnavailableError(f"apt knows no package {META_PACKAGE} (Debian has it)")
    return found.group(1)


def _build_initramfs(kernel: Kernel, init: Path, folder: Path) -> None:
    tree = folder / "initramfs"
    shutil.rmtree(tree, ignore_errors=True)
    for name in ("bin", "proc", "sys", "dev", "host", "upper", "new", "modules"):
        (tree / name).mkdir(parents=True)
    shutil.copy("/bin/busybox", tree / "bin/busybox")
    shutil.copy(init, tree / "init")
    (tree / "init").chmod(0o755)
    order: list[str] = []
    for module in EARLY_MODULES:
        root, version = kernel.modules.parents[2], kernel.modules.name
        shown = _run(["modprobe", "-d", str(root), "-S", version, "--show-depends", module])
        order += [line.split()[1] for line in shown.splitlines() if line.startswith("insmod")]
    for number, module in enumerate(dict.fromkeys(order)):
        shutil.copy(module, tree / "modules" / f"{number:02d}-{Path(module).name}")
    names = "\n".join(str(path.relative_to(tree)) for path in sorted(tree.rglob("*")))
    archive = subprocess.run(
        ["cpio", "--quiet", "-o", "-H", "newc"], cwd=tree, input=names.encode(), capture_output=True, check=True
    ).stdout
    kernel.initramfs.write_bytes(gzip.compress(archive))


def _run(argv: list[str], cwd: Path | None = None) -> str:
    program = shutil.which(argv[0], path="/usr/sbin:/usr/bin:/sbin:/bin") or argv[0]
    done = subprocess.run([program, *argv[1:]], cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise LabUnavailableError(f"{' '.join(argv)}: {done.stderr.strip()[-400:]}")
    return done.stdout
