# shellcheck shell=bash disable=SC2034
# How ./check runs this folder (see the top of ./check): the list of tests/clouds on what speaks the bridge
# contract. It is a part of its own so that it may run beside the clouds.
CC_LIMITS=$CC_ROOT/tests/e2e/limits-open.conf
CC_EXTRA=$CC_ROOT/tests/clouds/settings.ini
SUITE_SECONDS=3600
