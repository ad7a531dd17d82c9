// Writes proto_vectors.txt: random messages in the wire form that protobufjs gives them.
//
// usage: node proto_vectors.mjs >proto_vectors.txt      (the same text each time)
//
// A line is: uint64, text, bytes, bits of a double, bits of a float, uint32 and text of a message inside,
// int32, the whole message; texts, bytes, bits and messages in hex, "-" for empty.
import protobuf from '../node_modules/protobufjs/index.js';

const inner = new protobuf.Type('Inner').add(new protobuf.Field('a', 1, 'uint32')).add(new protobuf.Field('b', 2, 'string'));
const fields = [['u', 1, 'uint64'], ['s', 2, 'string'], ['b', 3, 'bytes'], ['d', 4, 'double'], ['f', 5, 'float'],
	['m', 600, 'Inner'], ['n', 536870911, 'int32']];
const type = fields.reduce((t, f) => t.add(new protobuf.Field(...f)), new protobuf.Type('Sample'));
new protobuf.Root().add(inner).add(type);

let seed = 20261201;
const random = (n) => { // xorshift: the same on every machine
	seed ^= seed << 13;
	seed ^= seed >>> 17;
	seed ^= seed << 5;
	return (seed >>> 0) % n;
};
const bytes = () => Buffer.from(Array.from({ length: random(4) ? random(20) : random(300) }, () => random(256)));
const text = () => bytes().toString('hex').slice(0, random(200));
const hex = (data) => Buffer.from(data).toString('hex') || '-';
const number = () => BigInt.asUintN(64, (BigInt(random(2 ** 32)) << 32n | BigInt(random(2 ** 32))) >> BigInt(random(64)));

for (let i = 0; i < 300; i++) {
	const u = number();
	const bits = Buffer.alloc(12);
	bits.writeDoubleBE((random(2 ** 32) - 2 ** 31) * 10 ** (random(40) - 20), 0);
	bits.writeFloatBE((random(2 ** 32) - 2 ** 31) / 2 ** random(31), 8);
	const m = { a: random(2 ** 32) >>> random(32), b: text() };
	const value = { u: protobuf.util.Long.fromString(String(u), true), s: text(), b: bytes(), d: bits.readDoubleBE(0),
		f: bits.readFloatBE(8), m, n: random(2 ** 32) | 0 };
	const wire = type.encode(type.fromObject(value)).finish();
	console.log([u, hex(value.s), hex(value.b), hex(bits.subarray(0, 8)), hex(bits.subarray(8)), m.a, hex(m.b), value.n,
		hex(wire)].join(' '));
}
