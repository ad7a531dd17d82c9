// The peer of the newer era: the same trivial tool, on a server of the official TypeScript SDK 2.x.
import http from 'node:http';
import { createMcpHandler, McpServer } from '@modelcontextprotocol/server';
import { z } from 'zod';

const handler = createMcpHandler(() => {
	const server = new McpServer({ name: 'peer', version: '1.0.0' });
	server.registerTool('check_memory', {
		description: 'trivial',
		inputSchema: z.object({ free_mb: z.number(), job: z.string().optional() }),
		outputSchema: z.object({ status: z.string() }),
	}, async () => ({ content: [{ type: 'text', text: '{"status":"ok"}' }], structuredContent: { status: 'ok' } }));
	return server;
});

http.createServer(async (req, res) => {
	const parts = [];
	for await (const part of req) parts.push(part);
	const answer = await handler.fetch(new Request(`http://${req.headers.host}${req.url}`,
		{ method: req.method, headers: req.headers, body: Buffer.concat(parts) }));
	const body = Buffer.from(await answer.arrayBuffer());
	res.writeHead(answer.status, Object.fromEntries(answer.headers)).end(body);
}).listen(0, '127.0.0.1', function ready() { console.log(this.address().port); });
