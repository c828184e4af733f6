#!/bin/sh
# A dhole program under Slurm: sbatch --ntasks=8 docs/launch/slurm.sh ./program args
#SBATCH --job-name=dhole
#SBATCH --ntasks=2
set -eu

# The run's secret, in a file that only this user can read. Every machine must see its folder.
umask 077
secret=$(mktemp "${DHOLE_SECRETS:-$HOME}/.dhole-secret-XXXXXX")
trap 'rm -f "$secret"' EXIT
trap 'exit 143' TERM
head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \n' > "$secret"

# Node 0 is task 0. Slurm starts it on the first machine of the list.
first=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
port=$((20000 + SLURM_JOB_ID % 10000))
export DHOLE_SECRET_FILE="$secret"
export DHOLE_RUN="$SLURM_JOB_ID"
export DHOLE_NODES="$SLURM_NTASKS"
export DHOLE_MEETING="$first:$port"
export DHOLE_LISTEN="0.0.0.0:$port"
export DHOLE_TRANSPORT="${DHOLE_TRANSPORT:-mixed}"
srun --kill-on-bad-exit=1 sh -c 'DHOLE_NODE=$SLURM_PROCID exec "$@"' sh "$@"
