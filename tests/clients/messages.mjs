// A model that always does the same: POST /v1/messages answers with one call of one tool, and after
// its result with a text. Enough for a headless client to make a whole turn without the internet.

import http from 'node:http';

const USAGE = { input_tokens: 1, output_tokens: 1 };

const blockOf = (block) => block.type === 'tool_use'
	? [{ ...block, input: {} }, { type: 'input_json_delta', partial_json: JSON.stringify(block.input) }]
	: [{ type: 'text', text: '' }, { type: 'text_delta', text: block.text }];

function events(block, model) {
	const [start, delta] = blockOf(block);
	return [
		{
			type: 'message_start',
			message: { id: 'msg_1', type: 'message', role: 'assistant', model, content: [],
				stop_reason: null, stop_sequence: null, usage: USAGE },
		},
		{ type: 'content_block_start', index: 0, content_block: start },
		{ type: 'content_block_delta', index: 0, delta },
		{ type: 'content_block_stop', index: 0 },
		{
			type: 'message_delta',
			delta: { stop_reason: block.type === 'tool_use' ? 'tool_use' : 'end_turn', stop_sequence: null },
			usage: USAGE,
		},
		{ type: 'message_stop' },
	];
}

function answer(res, body, block) {
	if (body.stream) {
		res.writeHead(200, { 'Content-Type': 'text/event-stream' });
		for (const event of events(block, body.model))
			res.write(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`);
		res.end();
		return;
	}
	res.writeHead(200, { 'Content-Type': 'application/json' }).end(JSON.stringify({
		id: 'msg_1',
		type: 'message',
		role: 'assistant',
		model: body.model,
		content: [block],
		stop_reason: block.type === 'tool_use' ? 'tool_use' : 'end_turn',
		stop_sequence: null,
		usage: USAGE,
	}));
}

const resultsOf = (messages) => messages
	.flatMap((message) => (Array.isArray(message.content) ? message.content : []))
	.filter((part) => part.type === 'tool_result');

/** `use` is { name, input }. `results` collects what the client sent back as the tool's result. */
export async function scriptedModel(use) {
	const results = [];
	let offered = [];
	const server = http.createServer(async (req, res) => {
		const parts = [];
		for await (const part of req) parts.push(part);
		if (req.method !== 'POST' || !/^\/v1\/messages(\?|$)/.test(req.url)) {
			res.writeHead(404).end();
			return;
		}
		const body = JSON.parse(Buffer.concat(parts));
		const names = (body.tools ?? []).map((tool) => tool.name);
		const given = resultsOf(body.messages);
		if (names.includes(use.name)) offered = names;
		if (given.length) results.push(...given);
		const block = names.includes(use.name) && !given.length
			? { type: 'tool_use', id: 'toolu_1', name: use.name, input: use.input }
			: { type: 'text', text: 'Finished.' };
		answer(res, body, block);
	});
	await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
	return {
		url: `http://127.0.0.1:${server.address().port}`,
		results,
		offered: () => offered,
		stop: () => new Promise((resolve) => {
			server.close(resolve);
			server.closeAllConnections();
		}),
	};
}
