-- wrk: POSTs one MCP tools/call after another, each with the next key of the file named by KEYS.
local keys, n, me = {}, 0, 0
for line in io.lines(os.getenv("KEYS")) do keys[#keys + 1] = line end
local body = os.getenv("BODY")
local more = os.getenv("HEADERS") or "" -- lines "Name: value"
local counter = 0
function setup(thread)
	thread:set("start", counter)
	counter = counter + 7
end
function init()
	me = start or 0
end
function request()
	me = me + 1
	local headers = {
		["Content-Type"] = "application/json",
		["Accept"] = "application/json, text/event-stream",
		["MCP-Protocol-Version"] = "2025-11-25",
	}
	for name, value in more:gmatch("([^:\n]+): ([^\n]+)") do headers[name] = value end
	local key = keys[me % #keys + 1]
	if key ~= "-" then headers["Authorization"] = "Bearer " .. key end
	return wrk.format("POST", os.getenv("TARGET"), headers, body)
end
function done(summary, latency, requests)
	io.write(string.format("RESULT {\"requests\":%d,\"seconds\":%f,\"p50_ms\":%f,\"p99_ms\":%f,\"bad\":%d}\n",
		summary.requests, summary.duration / 1e6, latency:percentile(50) / 1000, latency:percentile(99) / 1000,
		summary.errors.status + summary.errors.read + summary.errors.write + summary.errors.timeout))
end
