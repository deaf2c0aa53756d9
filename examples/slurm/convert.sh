#!/bin/sh
# sbatch --array=0-15 convert.sh model.plan.json
#SBATCH --job-name=tenfold
tenfold run "$1"
