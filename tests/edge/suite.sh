# shellcheck shell=bash disable=SC2034
# The edge is tested with the limits of production.
CC_BUILD=$CC_ROOT/build/dev
