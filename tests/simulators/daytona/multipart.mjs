// Multipart bodies: read those that clients send, write those that the toolbox sends.

/** The parts of a body in their order: { name, filename, data }. Undefined when it is of another form. */
export function readParts(body, type) {
	const boundary = /boundary=(?:"([^"]+)"|([^;]+))/.exec(type ?? '');
	if (!boundary) return undefined;
	const line = Buffer.from(`\r\n--${boundary[1] ?? boundary[2]}`);
	const whole = Buffer.concat([Buffer.from('\r\n'), body]);
	const parts = [];
	for (let at = whole.indexOf(line); at >= 0;) {
		const begin = at + line.length;
		if (whole.subarray(begin, begin + 2).toString() === '--') return parts;
		const head = whole.indexOf('\r\n\r\n', begin);
		const end = whole.indexOf(line, begin);
		if (head < 0 || end < 0) return undefined;
		const said = whole.subarray(begin, head).toString();
		parts.push({ name: /[ ;]name="([^"]*)"/.exec(said)?.[1], filename: /filename="([^"]*)"/.exec(said)?.[1],
			data: whole.subarray(head + 4, Math.max(end, head + 4)) });
		at = end;
	}
	return undefined;
}

export const BOUNDARY = 'DAYTONA-FILE-BOUNDARY';

/** parts: { name, filename, type, data } */
export function writeParts(parts) {
	const out = parts.flatMap(({ name, filename, type, data }) => [
		Buffer.from(`--${BOUNDARY}\r\nContent-Disposition: form-data; name="${name}"; filename="${filename}"\r\n` +
			`Content-Type: ${type}\r\nContent-Length: ${data.length}\r\n\r\n`), data, Buffer.from('\r\n')]);
	return Buffer.concat([...out, Buffer.from(`--${BOUNDARY}--\r\n`)]);
}
