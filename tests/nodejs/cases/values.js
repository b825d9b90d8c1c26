// Buffers, hashes, compression, URLs, and how values are shown.
const crypto = require('crypto');
const zlib = require('zlib');
const util = require('util');
const { StringDecoder } = require('string_decoder');

const buffer = Buffer.from('häß€𝄞');
console.log(buffer, buffer.toString('base64'), buffer.toString('hex'), buffer.indexOf('€'), Buffer.byteLength('€'));
console.log(Buffer.concat([Buffer.from('a'), Buffer.alloc(2, 'xy')]).toString('latin1'), Buffer.from('zz', 'hex').length);
const decoder = new StringDecoder('utf8');
console.log([...buffer].map(byte => decoder.write(Buffer.from([byte]))).join('|'), new TextDecoder().decode(Buffer.from([0xff, 0x41])));
for (const name of ['md5', 'sha1', 'sha256', 'sha512']) console.log(crypto.createHash(name).update('abc').digest('hex').slice(0, 16));
console.log(crypto.createHmac('sha256', 'key').update('text').digest('base64'), crypto.randomBytes(9).length,
    /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(crypto.randomUUID()));
console.log(crypto.pbkdf2Sync('secret', 'salt', 100, 16, 'sha256').toString('hex'));
const cipher = crypto.createCipheriv('aes-128-gcm', Buffer.alloc(16, 1), Buffer.alloc(12, 2));
const sealed = Buffer.concat([cipher.update('plain'), cipher.final(), cipher.getAuthTag()]);
console.log(sealed.toString('hex'));
for (const length of [1, 15, 16])
    try {
        const decipher = crypto.createDecipheriv('aes-128-gcm', Buffer.alloc(16, 1), Buffer.alloc(12, 2));
        decipher.setAuthTag(sealed.subarray(5, 5 + length));
        console.log(length, decipher.update(sealed.subarray(0, 5)).toString() + decipher.final());
    } catch (error) {
        console.log(length, error.name, error.code, error.message);
    }
for (const options of [undefined, { authTagLength: 17 }, { authTagLength: 12 }])
    try {
        const ocb = crypto.createCipheriv('aes-128-ocb', Buffer.alloc(16, 1), Buffer.alloc(12, 2), options);
        console.log(ocb.update('plain').toString('hex') + ocb.final('hex'), ocb.getAuthTag());
    } catch (error) {
        console.log(error.code, error.message);
    }
const packed = zlib.gzipSync(Buffer.alloc(10000, 'abc'));
console.log(packed.length < 200, zlib.gunzipSync(packed).length, zlib.inflateRawSync(zlib.deflateRawSync('raw')).toString());
zlib.brotliCompress ? zlib.deflate('later', (error, data) => console.log(zlib.inflateSync(data).toString())) : 0;
const url = new URL('../x/./y?b=2&a=1#z', 'https://user:pw@Example.COM:8080/p/q/');
url.searchParams.sort();
console.log(url.href, url.origin, url.username, url.port);
console.log([...new URLSearchParams('a=1&b=%20+&a=3')], require('querystring').stringify({ x: [1, 2], y: 'ä' }));
console.log(util.inspect({ a: [1, { b: new Map([['k', new Set([1n])]]) }], f() {}, [Symbol('s')]: null }, { depth: 5 }));
console.log(util.format('%s %d %j %o', 'a', 4.5, { x: 1 }, [1]), util.isDeepStrictEqual([{ a: 1 }], [{ a: 1 }]));
console.log(structuredClone({ when: new Date(0), list: [1, , 3] }), util.types.isProxy(new Proxy({}, {})));
const v8 = require('v8'), sly = JSON.parse('{"__proto__": {"admin": true}}');
for (const copy of [structuredClone(sly), v8.deserialize(v8.serialize(sly))]) console.log(copy.admin, Object.keys(copy));
const assert = require('assert');
assert.deepEqual({ a: [1, '2'] }, { a: ['1', 2] });
try {
    assert(1 === 2);
} catch (error) {
    console.log(error.message);
}
const place = {};
Error.captureStackTrace(place);
Error.prepareStackTrace = (error, sites) => sites.map(site => [site.isEval(), site.getFileName() === __filename]);
console.log(typeof place.stack, new Error().stack[0], require('http').METHODS.every(name => name === name.toUpperCase()));
