#!/usr/bin/env bash
# on_gpu.sh SLOTS GPUS COMMAND…: run a command on the GPU of a free slot; slot k is on GPU k mod GPUS,
# or of those that CUDA_VISIBLE_DEVICES names, where it is set.
# The lock of the slot goes when the process does, however it ends.
slots=$1 gpus=$2
shift 2
IFS=', ' read -ra devices <<<"${CUDA_VISIBLE_DEVICES-$(seq -s, 0 $((gpus - 1)))}"
[ ${#devices[@]} != 0 ] || devices=("")
mkdir -p _build/paper/slots
for ((slot = 0; slot < slots; slot++)); do
  exec 9>"_build/paper/slots/$slot"
  if flock --nonblock 9; then
    CUDA_VISIBLE_DEVICES=${devices[slot % ${#devices[@]}]} exec "$@"
  fi
done
echo "All $slots GPU slots of this machine are taken; wait for what runs on them, or give more with SLOTS." >&2
exit 1
