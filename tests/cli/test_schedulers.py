"""If TKPERF_SCHEDULERS=1 is set, the tests run the examples for Ansible and Slurm with the real programs. The tests
need ansible-core on the PATH, and Slurm's daemons.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.test_detach import SHORT
from tests.hosts import Lab, find, make_lab, set_sudoers, wait_until, why_no_hosts
from tkperf.model.record import RunStatus
from tkperf.runfile.reader import read_run

EXAMPLES = Path(__file__).parents[2] / "docs/examples"
TKPERF = Path(sys.executable).with_name("tkperf")

pytestmark = [
    pytest.mark.skipif("TKPERF_SCHEDULERS" not in os.environ, reason="TKPERF_SCHEDULERS is not set"),
    pytest.mark.skipif(why_no_hosts() is not None, reason=why_no_hosts() or ""),
]


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with make_lab() as made:
        for host in made.hosts:
            set_sudoers(host, "measure ALL=(root) NOPASSWD: ALL\n")
        yield made


@pytest.mark.skipif(find("ansible-playbook") is None, reason="there is no ansible-playbook")
def test_the_playbook_measures_fetches_and_compares(lab: Lab, tmp_path: Path) -> None:
    """The Ansible playbook measures drives, fetches the run files and compares the runs. If the playbook is called
    again, it makes no changes, because all runs exist.
    """
    drives = "\n".join(
        f"{host.name} ansible_user=measure ansible_python_interpreter=/usr/bin/python3 "
        f"""tkperf_drives='[{{"name": "{host.name}-1", "device": "sim:sata-ssd"}}]'"""
        for host in lab.hosts
    )
    (tmp_path / "inventory.ini").write_text(f"[drives]\n{drives}\n")
    shutil.copy(EXAMPLES / "ansible/measure.yml", tmp_path)
    values = {
        "tkperf": str(lab.tkperf),
        "tkperf_here": str(TKPERF),
        "options": ["-ssdt", "lat", "--profile", str(SHORT)],
        "poll_s": 1,
        "fetch_to": str(tmp_path / "results"),
    }
    call = lab.here.enter(
        find("ansible-playbook") or "",
        "-i",
        tmp_path / "inventory.ini",
        tmp_path / "measure.yml",
        "-e",
        json.dumps(values),
    )
    surroundings = {**os.environ, "ANSIBLE_HOME": str(tmp_path / "ansible"), "LC_ALL": "C.UTF-8"}
    for _ in range(2):
        done = subprocess.run(call, capture_output=True, text=True, env=surroundings, check=False, timeout=600)
        assert done.returncode == 0, done.stdout[-3000:]
    for host in lab.hosts:
        record = read_run(tmp_path / "results" / f"{host.name}-1.tkperf")
        assert record.status is RunStatus.COMPLETE
        assert record.info.host["hostname"] == host.name
    assert (tmp_path / "results/comparison.html").exists()


_SLURM_CONF = """ClusterName=lab
SlurmctldHost={host}
SlurmUser=root
AuthType=auth/none
CredType=cred/none
StateSaveLocation=/var/lib/slurm-state
SlurmdSpoolDir=/var/lib/slurmd
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
ReturnToService=2
GresTypes=drive
NodeName={host} NodeAddr=127.0.0.1 CPUs=2 Gres=drive:2 State=UNKNOWN
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


@pytest.mark.skipif(not all(map(find, ("slurmctld", "slurmd", "sbatch"))), reason="there is no Slurm")
def test_the_job_array_measures_a_drive_a_task(lab: Lab, tmp_path: Path) -> None:
    host = lab.hosts[0]
    slurm = host.folder / "etc/slurm"
    slurm.mkdir(exist_ok=True)
    (slurm / "slurm.conf").write_text(_SLURM_CONF.format(host=host.name))
    (slurm / "gres.conf").write_text(f"NodeName={host.name} Name=drive Count=2\n")
    with (host.folder / "etc/hosts").open("a") as file:
        file.write(f"127.0.0.1 {host.name}\n")
    host.run("mkdir", "-p", "/var/lib/slurm-state", "/var/lib/slurmd")
    logs = [tmp_path / f"{name}.log" for name in ("slurmctld", "slurmd")]
    daemons = [
        subprocess.Popen(host.enter(find(log.stem) or "", "-D", "-L", log), stderr=subprocess.DEVNULL) for log in logs
    ]
    try:
        (tmp_path / "drives.txt").write_text(
            "".join(f"rack7-{n} sim:sata-ssd - -ssdt lat --profile {SHORT}\n" for n in (0, 1))
        )
        shutil.copy(EXAMPLES / "slurm/measure.sbatch", tmp_path)
        wait_until(
            lambda: "idle" in host.run("sinfo", "-h", "-o", "%T"),
            lambda: " ".join(log.read_text()[-500:] for log in logs if log.exists()),
            within_s=60,
        )
        host.run(
            "env",
            f"--chdir={tmp_path}",
            f"TKPERF={TKPERF}",
            f"TKPERF_FOLDER={tmp_path}",
            "sbatch",
            "--array=0-1",
            "measure.sbatch",
            "drives.txt",
        )
        wait_until(lambda: not host.run("squeue", "-h").strip(), lambda: host.run("squeue", "-l"))
        said = [path.read_text() for path in tmp_path.glob("tkperf-*.log")]
        for number in (0, 1):
            path = tmp_path / f"rack7-{number}.tkperf"
            assert path.exists(), said
            assert read_run(path).status is RunStatus.COMPLETE
    finally:
        for daemon in daemons:
            daemon.terminate()
            daemon.wait()
