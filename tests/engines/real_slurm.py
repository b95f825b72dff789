"""A real Slurm on this machine: Debian's packages unpacked into a folder, one node, the loopback
address, no accounting; nothing is installed."""

from __future__ import annotations

import os
import platform
import shutil
import signal
import socket
import subprocess
import time
from contextlib import suppress
from pathlib import Path

from support.runs.local_servers import free_port

PACKAGES = (
    "slurmctld",
    "slurmd",
    "slurm-client",
    "slurm-wlm-basic-plugins",
    "libmunge2",
    "libhwloc15",
    "liblua5.1-0",
)
SECONDS_TO_START = 60.0
CONFIG = """
ClusterName=one
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/none
CredType=cred/none
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
PluginDir={plugins}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
SlurmctldPort={controller_port}
SlurmdPort={node_port}
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=2,sched_interval=2
ReturnToService=2
MpiDefault=none
SwitchType=switch/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
KillWait=30
MinJobAge=600
SlurmdTimeout=10
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} RealMemory=4000 State=UNKNOWN
PartitionName=low Nodes={host} Default=YES MaxTime=INFINITE State=UP PriorityTier=1 \
PreemptMode=REQUEUE GraceTime=0
PartitionName=high Nodes={host} MaxTime=INFINITE State=UP PriorityTier=10 PreemptMode=OFF
"""


class SlurmAbsentError(Exception):
    """Slurm is unavailable on this machine, with the reason."""


def unpack(folder: Path) -> Path:
    """Folder with Debian's packages of Slurm unpacked.

    Raises:
        SlurmAbsentError: this machine has no apt-get or dpkg, or no package can be reached.
    """
    for program in ("apt-get", "dpkg"):
        if shutil.which(program) is None:
            raise SlurmAbsentError(f"Slurm's packages are Debian's, and {program} is absent")
    if os.geteuid() != 0:
        raise SlurmAbsentError("slurmctld and slurmd run as root")
    packages = folder / "packages"
    packages.mkdir(parents=True)
    done = subprocess.run(
        ["apt-get", "download", *PACKAGES], cwd=packages, capture_output=True, text=True
    )
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise SlurmAbsentError(f"apt-get download of Slurm failed: {last}")
    root = folder / "root"
    for package in sorted(packages.glob("*.deb")):
        subprocess.run(["dpkg", "-x", str(package), str(root)], check=True)
    for daemon in root.glob("usr/sbin/*-wlm"):  # Debian's alternatives give these their names
        shutil.copy2(daemon, daemon.with_name(daemon.name.removesuffix("-wlm")))
    return root


class RealSlurm:
    """Controller and one node with two cores; ``environment`` directs commands to them."""

    def __init__(self, root: Path, folder: Path, cpus: int = 2):
        self.folder = folder
        self.step_daemon = str(root / "usr/sbin/slurmstepd")
        self.host = socket.gethostname().partition(".")[0]
        libraries = root / f"usr/lib/{platform.machine()}-linux-gnu"
        plugins = libraries / "slurm-wlm"
        for name in ("state", "spool"):
            (folder / name).mkdir(parents=True)
        config = folder / "slurm.conf"
        text = CONFIG.format(
            host=self.host,
            plugins=plugins,
            folder=folder,
            controller_port=free_port(),
            node_port=free_port(),
            cpus=cpus,
        )
        config.write_text(text)
        path = f"{root}/usr/bin:{root}/usr/sbin:{os.environ['PATH']}"
        self.environment = {
            **{k: v for k, v in os.environ.items() if not k.startswith(("SLURM_", "SBATCH_"))},
            "SLURM_CONF": str(config),
            "PATH": path,
            "LD_LIBRARY_PATH": f"{libraries}:{plugins}",
        }
        # jobs held back, with the time of the first observation
        self.delayed: dict[str, float] = {}
        self.daemons: dict[str, subprocess.Popen[bytes]] = {}

    def start(self) -> None:
        """Start the controller and the node, and wait until the node accepts jobs.

        Raises:
            SlurmAbsentError: they do not start.
        """
        self.start_daemon("slurmctld")
        self.start_node()
        self.wait_for_node("idle")

    def start_node(self) -> None:
        self.start_daemon("slurmd", "-d", self.step_daemon)

    def start_daemon(self, name: str, *arguments: str) -> None:
        with open(self.folder / f"{name}.out", "ab") as log:
            self.daemons[name] = subprocess.Popen(
                [name, "-D", *arguments],
                env=self.environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def wait_for_node(self, *states: str) -> None:
        deadline = time.monotonic() + SECONDS_TO_START
        while not set(self.ask("sinfo", "--noheader", "--format=%t").split()) & set(states):
            if time.monotonic() > deadline:
                log = self.folder / "slurmctld.log"
                raise SlurmAbsentError(f"the node is not {' or '.join(states)}: see {log}")
            time.sleep(0.5)

    def ask(self, *command: str) -> str:
        """Output of a Slurm command; empty if it fails."""
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True)
        return done.stdout.strip() if done.returncode == 0 else ""

    def end_daemon(self, name: str, signum: int = signal.SIGTERM) -> None:
        daemon = self.daemons.pop(name, None)
        if daemon is None:
            return
        daemon.send_signal(signum)
        try:
            daemon.wait(20)
        except subprocess.TimeoutExpired:
            daemon.kill()
            daemon.wait()

    def running(self) -> set[str]:
        """Numbers of the running jobs, as submitit names them."""
        return set(self.ask("squeue", "--noheader", "--states=R", "--array", "--format=%i").split())

    def start_delayed_jobs(self) -> None:
        """Release the jobs that Slurm holds back for two minutes after requeueing them.

        A node at first refuses a job whose number it has just finished.
        """
        for line in self.ask("squeue", "--noheader", "--array", "--format=%i %r").splitlines():
            number, _, reason = line.partition(" ")
            if reason != "BeginTime":
                self.delayed.pop(number, None)
            elif time.monotonic() - self.delayed.setdefault(number, time.monotonic()) > 20:
                self.ask("scontrol", "update", f"jobid={number}", "StartTime=now")

    def job_processes(self) -> list[int]:
        """Processes of this Slurm's jobs, by the folder of its configuration and a job's number."""
        numbers = []
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                environment = (entry / "environ").read_bytes()
                name = (entry / "cmdline").read_bytes()
            except OSError:  # the process has ended, or belongs to another user
                continue
            ours = str(self.folder).encode()
            if ours in environment and (b"SLURM_JOB_ID=" in environment or b"slurmstepd" in name):
                numbers.append(int(entry.name))
        return numbers

    def kill_node(self) -> None:
        """Kill every process on the node without a warning, and notify the controller."""
        self.end_daemon("slurmd", signal.SIGKILL)
        for number in self.job_processes():
            with suppress(ProcessLookupError):
                os.kill(number, signal.SIGKILL)
        self.ask("scontrol", "update", f"nodename={self.host}", "state=down", "reason=killed")

    def stop(self) -> None:
        """End every job and both daemons."""
        self.ask("scancel", "--full", "--user=root")
        self.ask("scancel", "--signal=KILL", "--full", "--user=root")
        self.end_daemon("slurmd")
        self.end_daemon("slurmctld")
