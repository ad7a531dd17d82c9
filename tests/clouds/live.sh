# shellcheck shell=bash
# What ./check live PROVIDER needs in the environment (see docs/providers.md). live.mjs reads the same
# names, and E2B_API_URL and DAYTONA_API_URL where they are set.
live_needs() {
	case $1 in
	vercel) echo VERCEL_TOKEN VERCEL_TEAM_ID VERCEL_PROJECT_ID ;;
	e2b) echo E2B_API_KEY ;;
	daytona) echo DAYTONA_API_KEY ;;
	modal) echo MODAL_TOKEN_ID MODAL_TOKEN_SECRET ;;
	modal-bridge) echo MODAL_BRIDGE_TOKEN MODAL_BRIDGE_URL ;;
	workers) echo WORKERS_BRIDGE_TOKEN WORKERS_BRIDGE_URL ;;
	*) return 1 ;;
	esac
}
