// The peer: a server of the official TypeScript SDK with one trivial tool, stateless, JSON answers.
import http from 'node:http';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { z } from 'zod';

function make() {
	const server = new McpServer({ name: 'peer', version: '1.0.0' });
	server.registerTool('check_memory', {
		description: 'trivial',
		inputSchema: { free_mb: z.number(), job: z.string().optional() },
		outputSchema: { status: z.string() },
	}, async () => ({ content: [{ type: 'text', text: '{"status":"ok"}' }], structuredContent: { status: 'ok' } }));
	return server;
}

http.createServer(async (req, res) => {
	const parts = [];
	for await (const part of req) parts.push(part);
	const server = make();
	const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined, enableJsonResponse: true });
	res.on('close', () => { transport.close(); server.close(); });
	await server.connect(transport);
	await transport.handleRequest(req, res, JSON.parse(Buffer.concat(parts).toString()));
}).listen(0, '127.0.0.1', function ready() { console.log(this.address().port); });
