# shellcheck shell=bash disable=SC2034
# How ./check runs this folder (see the top of ./check). The instance's database serves the statements.
SUITE_INSTANCE=yes
SUITE_SECONDS=420
