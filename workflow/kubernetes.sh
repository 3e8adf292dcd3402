#!/usr/bin/env bash
# How snakemake reaches Kubernetes for `make paper PROFILE=kubernetes`.  A job is a pod with the volume `paper` at /paper, where
# this folder lies; book/reproduce.md says the rest.
#
#   kubernetes.sh submit CPUS MEBIBYTES GPUS SCRIPT    prints the job's name
#   kubernetes.sh status NAME                          prints running, success or failed
#   kubernetes.sh cancel NAME…
set -euo pipefail
action=$1
shift
case $action in
  submit)
    gpu=
    if [ "$3" != 0 ]; then gpu=", nvidia.com/gpu: $3"; fi
    kubectl create --output=name --filename=- <<YAML
apiVersion: batch/v1
kind: Job
metadata: {generateName: rtx-}
spec:
  backoffLimit: 0
  ttlSecondsAfterFinished: 86400
  template:
    spec:
      restartPolicy: Never
      containers:
        - name: job
          image: ${RTX_IMAGE:-docker.io/library/python:3.11}
          command: [bash, $(realpath "$4")]
          resources: {requests: {cpu: $1, memory: ${2}Mi}, limits: {memory: ${2}Mi$gpu}}
          volumeMounts: [{name: paper, mountPath: /paper}]
      volumes: [{name: paper, persistentVolumeClaim: {claimName: paper}}]
YAML
    ;;
  status)
    read -r succeeded failed < <(kubectl get "$1" --output='jsonpath={.status.succeeded}/0 {.status.failed}/0{"\n"}')
    case $succeeded$failed in
      1*) echo success ;;
      */01*) echo failed ;;
      *) echo running ;;
    esac
    ;;
  cancel) kubectl delete "$@" ;;
  *) echo "got $action; expected submit, status or cancel" >&2; exit 1 ;;
esac
