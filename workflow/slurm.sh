#!/usr/bin/env bash
# A SLURM of one node, this machine, to try `make paper PROFILE=slurm` without a cluster.  It needs root and Debian's packages
# slurmctld, slurmd, slurm-client and munge, and keeps everything in FOLDER but one link, /etc/slurm/slurm.conf: snakemake takes the
# variable SLURM_CONF from its jobs.  Where that file exists, SLURM is set up here already, and nothing is started.
#
#   workflow/slurm.sh start FOLDER
#   workflow/slurm.sh stop FOLDER
set -euo pipefail
action=${1:?start or stop} folder=$(realpath -m "${2:?a folder for its configuration, logs and state}")
conf=/etc/slurm/slurm.conf

stop() {
  for daemon in slurmd slurmctld munged; do
    if [ -f "$folder/$daemon.pid" ]; then kill "$(cat "$folder/$daemon.pid")" 2>/dev/null || true; fi
  done
  if [ "$(readlink "$conf")" = "$folder/slurm.conf" ]; then rm "$conf"; fi
}

start() {
  for program in munged slurmctld slurmd sbatch; do
    command -v "$program" >/dev/null || { echo "$program is missing: apt-get install slurmctld slurmd slurm-client munge" >&2; exit 1; }
  done
  [ "$(id -u)" = 0 ] || { echo "slurmd needs root; this is user $(id -un)." >&2; exit 1; }
  [ ! -e "$conf" ] || { echo "$conf exists: SLURM is set up on this machine." >&2; exit 1; }
  mkdir -p "$folder"/{state,spool} /etc/slurm
  chmod 755 "$folder"
  (umask 077; head -c 1024 /dev/urandom >"$folder/munge.key")
  trap stop EXIT # until the node is up
  munged --force --socket="$folder/munge.socket" --key-file="$folder/munge.key" --pid-file="$folder/munged.pid" \
    --log-file="$folder/munged.log" --seed-file="$folder/munge.seed"
  read -r controller node < <(python3 - <<'PORTS'
import socket
free = [socket.socket() for _ in range(2)]
for one in free:
    one.bind(("127.0.0.1", 0))
print(*(one.getsockname()[1] for one in free))
PORTS
  )
  local host memory
  host=$(hostname -s) memory=$(($(awk '/MemTotal/ {print $2}' /proc/meminfo) / 1024 * 9 / 10))
  cat >"$folder/slurm.conf" <<CONF
ClusterName=one
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$controller
SlurmdPort=$node
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$folder/munge.socket
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/filetxt
JobCompLoc=$folder/jobs.log
JobAcctGatherType=jobacct_gather/none
MinJobAge=600
ReturnToService=2
MpiDefault=none
NodeName=$host NodeAddr=127.0.0.1 CPUs=$(nproc --all) RealMemory=$memory
PartitionName=all Nodes=$host Default=YES MaxTime=INFINITE State=UP
CONF
  ln -sfn "$folder/slurm.conf" "$conf"
  slurmctld
  slurmd
  for _ in $(seq 60); do
    if [ "$(sinfo --noheader --format=%T 2>/dev/null)" = idle ]; then
      trap - EXIT
      echo "One node with $(nproc --all) CPUs is up."
      return
    fi
    sleep 1
  done
  echo "The node did not come up; see slurmctld.log and slurmd.log in $folder." >&2
  exit 1
}

case $action in
  start | stop) "$action" ;;
  *) echo "got $action; expected start or stop" >&2; exit 1 ;;
esac
