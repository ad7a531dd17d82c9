# shellcheck shell=bash disable=SC2034
# How ./check runs this folder (see the top of ./check).
CC_LIMITS=$CC_ROOT/tests/e2e/limits-open.conf
CC_EXTRA=$CC_ROOT/tests/clouds/settings.ini
SUITE_SECONDS=3600
