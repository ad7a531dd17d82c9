// A program that somebody writes against the generated types: a key is made, memory is checked, a job with
// a file runs, its result is read again. It must compile in strict mode as it stands.

import createClient from 'openapi-fetch';
import type { paths } from './generated';

const { BASE, KEY } = process.env as { BASE: string; KEY: string };
const api = createClient<paths>({ baseUrl: BASE, headers: { Authorization: `Bearer ${KEY}` } });

const check = await api.POST('/api/run/check_memory', { body: { free_mb: 100, total_mb: 8000, job: 'make' } });
if (check.error) throw new Error(check.error.title);
const verdict: 'run_local' | 'offload' = check.data.verdict;

const ran = await api.POST('/api/run/run_job', {
	body: { cmd: 'cat greeting; exit 3', files: [{ path: 'greeting', content: 'hello' }], wait_s: 100 },
	params: { header: { 'Idempotency-Key': `main-${Date.now()}` } },
});
if (ran.error) throw new Error(`${ran.error.code}: ${ran.error.detail ?? ''}`);
const again = await api.POST('/api/run/get_job', { body: { job_id: ran.data.job_id ?? '', wait_s: 10 } });
if (again.error) throw new Error(again.error.title);

const refused = await api.POST('/api/run/get_job', { body: { job_id: 'nonsense' } });
const field: string | undefined = refused.error?.field;

console.log(JSON.stringify({ verdict, outcome: again.data.outcome, stdout: again.data.stdout,
	exit: again.data.exit_code, field, status: refused.response.status }));
