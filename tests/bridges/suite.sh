# shellcheck shell=bash disable=SC2034
# Two bridges, two runtimes, a hundred cases each.
SUITE_SECONDS=1200
