// Who saw a command begin: each job's first act is to send a line to this listener. Not the connector
// says that it began, nor the runner, but the command.

import net from 'node:net';

export class Witness {
	began = new Map(); // job -> how often
	calls = new Map(); // call -> set of jobs

	async start() {
		this.server = net.createServer((socket) => {
			let text = '';
			socket.on('data', (data) => {
				text += data;
			});
			socket.on('error', () => {});
			socket.on('end', () => {
				const [call, job] = text.trim().split(' ');
				this.began.set(job, (this.began.get(job) ?? 0) + 1);
				if (!this.calls.has(call)) this.calls.set(call, new Set());
				this.calls.get(call).add(job);
			});
		});
		await new Promise((resolve) => this.server.listen(0, '127.0.0.1', resolve));
		this.port = this.server.address().port;
		return this;
	}

	/** First line of a command: from here on it has begun. */
	line(call) {
		return `bash -c 'echo "${call} $SBX_JOB" >/dev/tcp/127.0.0.1/${this.port}'`;
	}

	/** How often the command of a job (job_...) began. */
	times(jobId) {
		return this.began.get(jobId.replace(/^job_/, '')) ?? 0;
	}

	stop() {
		this.server.close();
	}
}
