// Starts the fixture program behind a real nginx, in a folder of its own, and talks to both.
import { spawn, execFileSync } from 'node:child_process';
import { copyFileSync, mkdtempSync, mkdirSync, readFileSync, rmSync, writeFileSync, existsSync } from 'node:fs';
import { once } from 'node:events';
import http from 'node:http';
import net from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const top = join(dirname(fileURLToPath(import.meta.url)), '..', '..');
export const fixture = process.env.WORKER_FIXTURE ?? join(top, 'build', 'dev', 'worker_fixture');
// Sanitizer builds are slow; conditions are awaited this long before a test fails.
const PATIENCE_MS = 20000;

export async function until(condition, what) {
  const end = Date.now() + PATIENCE_MS;
  for (;;) {
    const value = await condition();
    if (value) return value;
    if (Date.now() > end) throw new Error(`never came: ${what}`);
    await new Promise((r) => setTimeout(r, 10));
  }
}

async function freePort() {
  const s = net.createServer().listen(0, '127.0.0.1');
  await once(s, 'listening');
  const { port } = s.address();
  s.close();
  await once(s, 'close');
  return port;
}

const nginxConf = (dir, port) => `
daemon off; worker_processes 1; pid ${dir}/nginx.pid; error_log ${dir}/nginx.log warn;
${process.getuid() === 0 ? 'user root root;' : ''}
events { worker_connections 4096; }
http {
  access_log off;
  client_body_temp_path ${dir}/t1; proxy_temp_path ${dir}/t2; fastcgi_temp_path ${dir}/t3;
  uwsgi_temp_path ${dir}/t4; scgi_temp_path ${dir}/t5;
  upstream workers {
    zone workers 64k;
    server unix:${dir}/s max_conns=2000;
    keepalive 64; keepalive_timeout 1s; keepalive_time 2s;
  }
  server {
    listen 127.0.0.1:${port} backlog=2000;
    client_max_body_size 4m; client_body_buffer_size 64k; large_client_header_buffers 4 16k;
    location / {
      fastcgi_pass workers; fastcgi_keep_conn on;
      fastcgi_connect_timeout 3s; fastcgi_read_timeout 260s; fastcgi_max_temp_file_size 0;
      fastcgi_param REQUEST_METHOD $request_method; fastcgi_param QUERY_STRING $query_string;
      fastcgi_param CONTENT_LENGTH $content_length; fastcgi_param DOCUMENT_URI $document_uri;
      error_page 502 504 = @busy;
    }
    location @busy { internal; add_header Retry-After 2 always; return 503 'nobody'; }
  }
}`;

export class Service {
  constructor(settings = {}) {
    this.settings = settings;
    this.dir = mkdtempSync(join(tmpdir(), 'cc-w-'));
    this.socket = join(this.dir, 's');
    this.self = join(this.dir, 'fixture');
    this.bad = join(this.dir, 'bad-settings');
    this.output = '';
    copyFileSync(fixture, this.self);
  }

  async start() {
    this.port = await freePort();
    for (const t of ['t1', 't2', 't3', 't4', 't5']) mkdirSync(join(this.dir, t));
    writeFileSync(join(this.dir, 'nginx.conf'), nginxConf(this.dir, this.port));
    this.nginx = spawn('nginx', ['-p', this.dir, '-e', join(this.dir, 'nginx.log'), '-c', join(this.dir, 'nginx.conf')],
      { stdio: 'ignore' });
    this.startMaster();
    await this.logged('master.ready');
    await until(() => new Promise((r) => {
      const s = net.connect(this.port, '127.0.0.1', () => { s.destroy(); r(true); }).on('error', () => r(false));
    }), 'nginx');
    return this;
  }

  startMaster() {
    this.master = spawn(this.self, ['serve'], {
      stdio: ['ignore', 'ignore', 'pipe'],
      env: {
        PATH: process.env.PATH, FX_SOCKET: this.socket, FX_NOTES: join(this.dir, 'notes'), FX_BAD_FILE: this.bad,
        TSAN_OPTIONS: 'exitcode=66', ASAN_OPTIONS: 'exitcode=66', ...this.settings,
      },
    });
    this.master.stderr.on('data', (d) => { this.output += d; });
    const master = this.master;
    this.ended = once(master, 'exit').then(([code, signal]) => ({ code, signal }));
  }

  // Log lines of an event, all processes.
  events(name, more = {}) {
    return this.output.split('\n').filter((l) => l.startsWith('{')).map((l) => JSON.parse(l))
      .filter((e) => e.event === name && Object.entries(more).every(([k, v]) => e[k] === v));
  }
  logged(name, more = {}, times = 1) {
    return until(() => this.events(name, more).length >= times && this.events(name, more), `${times} x ${name}`);
  }
  notes(word) {
    const file = join(this.dir, 'notes');
    const lines = existsSync(file) ? readFileSync(file, 'utf8').split('\n').filter(Boolean) : [];
    return lines.map((l) => l.split(' ')).filter(([w]) => w === word).map(([, pid]) => Number(pid));
  }
  noted(word, times = 1) {
    return until(() => this.notes(word).length >= times && this.notes(word), `${times} x note ${word}`);
  }

  // Living and dead children of the master: [{pid, state, role}].
  children() {
    try {
      return execFileSync('ps', ['-o', 'pid=,stat=,args=', '--ppid', String(this.master.pid)], { encoding: 'utf8' })
        .split('\n').filter(Boolean).map((l) => l.trim().split(/\s+/))
        .map(([pid, state, , role]) => ({ pid: Number(pid), state, role }));
    } catch {
      return []; // ps says 1 when there is none
    }
  }
  workers() {
    return this.children().filter((c) => c.role === 'worker' && !c.state.startsWith('Z')).map((c) => c.pid);
  }

  hup() { this.master.kill('SIGHUP'); }

  // The master's end; throws when a sanitizer has spoken.
  async stop() {
    this.nginx.kill('SIGTERM'); // first: it closes the kept connections, so the drain is short
    if (this.nginx.exitCode === null) await once(this.nginx, 'exit');
    if (this.master.exitCode === null && this.master.signalCode === null) this.master.kill('SIGTERM');
    const end = await this.ended;
    const found = /(ThreadSanitizer|AddressSanitizer|LeakSanitizer|runtime error)[^\n]*/.exec(this.output);
    if (found) throw new Error(`sanitizer: ${this.output.slice(Math.max(0, found.index - 200), found.index + 4000)}`);
    rmSync(this.dir, { recursive: true, force: true, maxRetries: 10 });
    return end;
  }

  // One request: {status, headers, body}; status 0 when the connection broke.
  ask(path, { method = 'GET', body, headers = {}, agent } = {}) {
    return new Promise((resolve) => {
      const broken = (e) => resolve({ status: 0, headers: {}, body: e.code });
      const r = http.request({ host: '127.0.0.1', port: this.port, path, method, headers, agent }, (res) => {
        const parts = [];
        res.on('data', (d) => parts.push(d));
        res.on('error', broken);
        res.on('end', () => resolve({ status: res.statusCode, headers: res.headers, body: Buffer.concat(parts).toString('latin1') }));
      });
      r.on('error', broken);
      r.end(body);
    });
  }

  // A request whose client can go away: {answer, leave()}.
  begin(path) {
    let resolve;
    const answer = new Promise((r) => { resolve = r; });
    const r = http.request({ host: '127.0.0.1', port: this.port, path, agent: false }, (res) => {
      let text = '';
      res.on('data', (d) => { text += d; });
      res.on('end', () => resolve({ status: res.statusCode, headers: res.headers, body: text }));
    });
    r.on('error', (e) => resolve({ status: 0, headers: {}, body: e.code }));
    r.end();
    return { answer, leave: () => r.destroy() };
  }

  // A raw connection to the FastCGI socket.
  async raw(bytes) {
    const s = net.connect(this.socket);
    s.on('error', () => {});
    await once(s, 'connect');
    if (bytes) s.write(bytes);
    return s;
  }
}

// The end of a raw connection, by close or by reset.
export function ending(c) {
  c.resume();
  return new Promise((r) => { c.on('close', r); });
}

// Runs fn with a service and always stops it; returns the master's end.
export async function withService(settings, fn) {
  const s = await new Service(settings).start();
  try {
    await fn(s);
  } catch (e) {
    s.master.kill('SIGKILL');
    await s.stop().catch((more) => { e.message += `\n${more.message}`; });
    throw e;
  }
  return s.stop();
}

export function fnv(buffer) {
  let h = 2166136261;
  for (const b of buffer) h = Math.imul(h ^ b, 16777619) >>> 0;
  return h;
}

export function record(type, id, content, padding = 0) {
  const h = Buffer.from([1, type, id >> 8, id & 255, content.length >> 8, content.length & 255, padding, 0]);
  return Buffer.concat([h, content, Buffer.alloc(padding)]);
}
export const beginRecord = (flags = 1) => record(1, 1, Buffer.from([0, 1, flags, 0, 0, 0, 0, 0]));
export function pair(name, value) {
  return Buffer.concat([Buffer.from([name.length, value.length]), Buffer.from(name), Buffer.from(value)]);
}
