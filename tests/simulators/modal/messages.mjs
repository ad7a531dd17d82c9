// The messages of Modal's two services that are simulated: field numbers and types, made into codecs. A
// type in brackets is repeated, { of } is a map from text to text, a capital letter begins the name of another
// message. What a message has besides is skipped, as on the wire.

import protobuf from 'protobufjs';

const text = 'string', number = 'uint32', long = 'uint64', flag = 'bool', bytes = 'bytes', whole = 'int32';

const parts = {
	Tag: { tagName: [1, text], tagValue: [2, text] },
	Env: { values: [1, { of: text }] },
	SecretSource: { secretId: [1, text], env: [2, 'Env'] },
	Gpu: { count: [2, number], gpuType: [4, text] },
	Resources: { memoryMb: [2, number], milliCpu: [3, number], gpu: [4, 'Gpu'], memoryMbMax: [5, number],
		milliCpuMax: [7, number] },
	Port: { port: [1, number], unencrypted: [2, flag] },
	Ports: { ports: [1, ['Port']] },
	NetworkAccess: { type: [1, number], cidrs: [2, [text]], domains: [3, [text]] },
	Sandbox: { entrypointArgs: [1, [text]], imageId: [3, text], secretIds: [4, [text]], resources: [5, 'Resources'],
		timeoutSecs: [7, number], workdir: [8, text], openPorts: [20, 'Ports'],
		networkAccess: [22, 'NetworkAccess'], name: [30, text], idleTimeoutSecs: [33, number] },
	Access: { jwt: [1, text], url: [2, text] },
	Result: { status: [1, number], exception: [2, text], exitcode: [3, whole] },
	TaskInfo: { id: [1, text], startedAt: [2, 'double'], finishedAt: [3, 'double'], result: [4, 'Result'] },
	SandboxInfo: { id: [1, text], createdAt: [3, 'double'], taskInfo: [4, 'TaskInfo'], appId: [5, text],
		tags: [6, ['Tag']], name: [7, text], imageId: [8, text], timeoutSecs: [11, number],
		idleTimeoutSecs: [12, number] },
	EnvironmentSettings: { imageBuilderVersion: [1, text], webhookSuffix: [2, text] },
	EnvironmentMetadata: { name: [1, text], settings: [2, 'EnvironmentSettings'] },
	Image: { dockerfileCommands: [6, [text]] },
	TaskLog: { data: [1, text] },
	LogItem: { data: [1, text] },
	StreamStart: { taskId: [1, text], execId: [2, text], offset: [3, long] },
	Nothing: {},
	RetryPolicy: { retryAfterSecs: [1, 'float'] },
	Any: { typeUrl: [1, text], value: [2, bytes] },
	StatusDetails: { code: [1, whole], message: [2, text], details: [3, ['Any']] },
};

const sandbox = { sandboxId: [1, text] };
const ofTask = { taskId: [1, text], execId: [2, text] };
const nothing = {};
const ended = { code: [1, whole], signal: [2, whole] };
const create = { appId: [1, text], definition: [2, 'Sandbox'], ephemeralSecrets: [3, 'Env'], tags: [4, ['Tag']],
	secretSources: [6, ['SecretSource']] };
const list = { appId: [1, text], beforeTimestamp: [2, 'double'], environmentName: [3, text],
	includeFinished: [4, flag], tags: [5, ['Tag']] };
const named = { sandboxName: [1, text], environmentName: [2, text], appName: [3, text], includeTerminated: [4, flag] };
const wait = { sandboxId: [1, text], timeout: [2, 'float'] };

// name: [request, reply, 'stream' when the reply is one, 'push' when the request is one]
const calls = {
	AuthTokenGet: [nothing, { token: [1, text] }],
	AppGetOrCreate: [{ appName: [1, text], environmentName: [2, text], objectCreationType: [3, number] },
		{ appId: [1, text] }],
	EnvironmentGetOrCreate: [{ deploymentName: [1, text] },
		{ environmentId: [1, text], metadata: [2, 'EnvironmentMetadata'] }],
	ImageGetOrCreate: [{ image: [2, 'Image'], appId: [4, text], forceBuild: [7, flag], builderVersion: [9, text] },
		{ imageId: [1, text], result: [2, 'Result'] }],
	ImageJoinStreaming: [{ imageId: [1, text], timeout: [2, 'float'], lastEntryId: [3, text] },
		{ result: [1, 'Result'], taskLogs: [2, ['TaskLog']], entryId: [3, text], eof: [4, flag] }, 'stream'],
	ImageFromId: [{ imageId: [1, text] }, { imageId: [1, text] }],
	SecretGetOrCreate: [{ deploymentName: [1, text], environmentName: [3, text], objectCreationType: [4, number],
		envDict: [5, { of: text }], requiredKeys: [7, [text]] }, { secretId: [1, text] }],
	SandboxCreateV2: [create, { sandboxId: [1, text], taskId: [3, text], commandRouterAccess: [5, 'Access'] }],
	SandboxCreate: [create, { sandboxId: [1, text] }],
	SandboxGetTaskId: [wait, { taskId: [1, text], taskResult: [2, 'Result'] }],
	SandboxGetCommandRouterAccess: [sandbox, { jwt: [1, text], url: [2, text] }],
	TaskGetCommandRouterAccess: [{ taskId: [1, text] }, { jwt: [1, text], url: [2, text] }],
	SandboxWait: [wait, { result: [1, 'Result'] }],
	SandboxTerminate: [sandbox, { existingResult: [1, 'Result'] }],
	SandboxList: [list, { sandboxes: [1, ['SandboxInfo']] }],
	SandboxGetFromName: [named, { sandboxId: [1, text] }],
	SandboxTagsSet: [{ sandboxId: [2, text], tags: [3, ['Tag']] }, nothing],
	SandboxTagsGet: [sandbox, { tags: [1, ['Tag']] }],
	SandboxGetTunnels: [wait, { result: [1, 'Result'], tunnels: [2, ['Nothing']] }],
	SandboxGetLogs: [{ sandboxId: [1, text], fileDescriptor: [2, number], timeout: [3, 'float'], lastEntryId: [4, text] },
		{ items: [2, ['LogItem']], entryId: [5, text], eof: [14, flag] }, 'stream'],
	WorkspaceBillingRates: [nothing, { rates: [1, { of: text }] }],
};
for (const name of ['GetTaskId', 'Wait', 'Terminate', 'List', 'GetFromName', 'TagsSet', 'TagsGet', 'GetTunnels'])
	calls[`Sandbox${name}V2`] = calls[`Sandbox${name}`];

const routed = {
	TaskExecStart: [{ ...ofTask, commandArgs: [3, [text]], stdoutConfig: [4, number], stderrConfig: [5, number],
		timeoutSecs: [6, number], workdir: [7, text], secretIds: [8, [text]], env: [12, { of: text }],
		secretSources: [13, ['SecretSource']] }, nothing],
	TaskExecStdioRead: [{ ...ofTask, offset: [3, long], fileDescriptor: [4, number] }, { data: [1, bytes] }, 'stream'],
	TaskExecWait: [ofTask, ended],
	TaskExecPoll: [ofTask, ended],
	TaskExecStdinWrite: [{ ...ofTask, offset: [3, long], data: [4, bytes], eof: [5, flag] }, nothing],
	TaskExecStdinWriteStream: [{ start: [1, 'StreamStart'], data: [2, bytes], end: [3, 'Nothing'] }, nothing, 'push'],
	TaskExecStdinStatus: [ofTask, { numBytesWritten: [1, long], closed: [2, flag] }],
	SandboxStdioReadV2: [{ taskId: [1, text], offset: [2, long], fileDescriptor: [3, number] },
		{ data: [1, bytes], startingOffset: [2, long] }, 'stream'],
};

const root = new protobuf.Root();

function make(name, fields) {
	const type = new protobuf.Type(name);
	for (const [field, [id, kind]] of Object.entries(fields)) {
		if (Array.isArray(kind)) type.add(new protobuf.Field(field, id, kind[0], 'repeated'));
		else if (kind.of) type.add(new protobuf.MapField(field, id, 'string', kind.of));
		else type.add(new protobuf.Field(field, id, kind));
	}
	root.add(type);
	return type;
}

/** Types by name: parts as they are, and NameRequest and NameReply of every call. */
export const types = {};
for (const [name, fields] of Object.entries(parts)) types[name] = make(name, fields);

/** A message of the type from and to bytes; numbers of 64 bits are plain numbers, absent fields are absent. */
export const encode = (type, value) => Buffer.from(type.encode(type.fromObject(value)).finish());
export const decode = (type, data) => type.toObject(type.decode(data), { longs: Number, arrays: true, objects: true });

/** Calls by path: { name, router, request, reply, kind }. */
export const methods = new Map();
for (const [service, table] of [['modal.client.ModalClient', calls], ['modal.task_command_router.TaskCommandRouter', routed]])
	for (const [name, [request, reply, kind = 'unary']] of Object.entries(table))
		methods.set(`/${service}/${name}`, { name, router: table === routed, kind,
			request: make(`${name}Request`, request), reply: make(`${name}Reply`, reply) });
