#!/bin/sh
#SBATCH --job-name=safer-certify
#SBATCH --ntasks=16
#SBATCH --cpus-per-task=8
#SBATCH --time=08:00:00
#SBATCH --requeue
#SBATCH --open-mode=append
#
# A run shared by 16 ranks:
#
#   sbatch slurm-mpi.sh MODEL LEXICON DATA RUN.jsonl
#
# MODEL and LEXICON are on a disk that all nodes see, DATA and RUN.jsonl where rank 0 sees them. A job that is preempted,
# or that loses a node, is queued again and goes on where it was, on any number of ranks. With GPUs add
# `#SBATCH --gpus-per-task=1` and `--device cuda`.
set -eu
model=$1 lexicon=$2 data=$3 run=$4
exec mpirun --bind-to none safer certify --mpi --model "$model" --lexicon "$lexicon" --data "$data" \
  --threads "${SLURM_CPUS_PER_TASK:-1}" --quiet --resume -o "$run"
