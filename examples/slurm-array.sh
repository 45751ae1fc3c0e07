#!/bin/sh
#SBATCH --job-name=safer-certify
#SBATCH --array=1-16
#SBATCH --cpus-per-task=8
#SBATCH --time=08:00:00
#SBATCH --requeue
#SBATCH --open-mode=append
#
# A run in 16 parts, one task of a Slurm array each:
#
#   job=$(sbatch --parsable slurm-array.sh MODEL LEXICON DATA FOLDER)
#   sbatch --dependency=afterok:$job --wrap 'safer merge FOLDER/part-*.jsonl -o FOLDER/run.jsonl'
#
# FOLDER is on a disk that all nodes see. A task that is preempted, or whose node dies, is queued again and goes on where
# it was. To run only tasks 3 and 7 once more, say how many parts there were:
#
#   sbatch --array=3,7 --export=ALL,SHARD=auto/16 slurm-array.sh MODEL LEXICON DATA FOLDER
set -eu
model=$1 lexicon=$2 data=$3 folder=$4
mkdir -p "$folder"
exec safer certify --model "$model" --lexicon "$lexicon" --data "$data" --threads "${SLURM_CPUS_PER_TASK:-0}" --quiet \
  --shard "${SHARD:-auto}" --resume -o "$folder/part-$SLURM_ARRAY_TASK_ID.jsonl"
