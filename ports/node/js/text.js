// Text in pieces: StringDecoder and TextDecoder.
'use strict';
const { bindings } = shared;
const bytes = native.buffer;
const encodings = ['ascii', 'utf8', 'base64', 'utf16le', 'latin1', 'hex', 'buffer', 'base64url'];
const UTF8 = 1, BASE64 = 2, UCS2 = 3, BASE64URL = 7;
// Where a decoder's state keeps what.
const MISSING = 4, BUFFERED = 5, ENCODING = 6;

// How many bytes at the end begin a character of UTF-8 that is not whole, and how many it lacks.
function unfinished(data) {
    for (let back = 1; back <= 3 && back <= data.length; back++) {
        const byte = data[data.length - back];
        if ((byte & 0xc0) === 0x80) continue;
        const need = byte >= 0xf0 && byte <= 0xf4 ? 4 : byte >= 0xe0 && byte < 0xf0 ? 3
            : byte >= 0xc2 && byte < 0xe0 ? 2 : 1;
        if (need <= back) return [0, 0];
        // A second byte that cannot follow ends the character at once.
        if (back > 1) {
            const second = data[data.length - back + 1];
            if (byte === 0xe0 && second < 0xa0 || byte === 0xed && second > 0x9f ||
                byte === 0xf0 && second < 0x90 || byte === 0xf4 && second > 0x8f) return [0, 0];
        }
        return [back, need - back];
    }
    return [0, 0];
}

function remainder(data, encoding, held) {
    if (encoding === UTF8) return unfinished(data);
    if (encoding === UCS2) {
        const odd = data.length % 2, last = data.length > odd ? data[data.length - odd - 1] : 0;
        if (last >= 0xd8 && last <= 0xdb && !(odd && held < 2)) return [2 + odd, 2 - odd];
        return [odd, odd];
    }
    if (encoding === BASE64 || encoding === BASE64URL) {
        const rest = data.length % 3;
        return [rest, rest ? 3 - rest : 0];
    }
    return [0, 0];
}

bindings.string_decoder = () => ({
    encodings, kIncompleteCharactersStart: 0, kIncompleteCharactersEnd: 4, kMissingBytes: MISSING,
    kBufferedBytes: BUFFERED, kEncodingField: ENCODING, kNumFields: 7, kSize: 7,
    decode(state, chunk) {
        if (typeof chunk === 'string') return chunk;
        if (!ArrayBuffer.isView(chunk)) {
            const { codes } = shared.require('internal/errors');
            throw new codes.ERR_INVALID_ARG_TYPE('buf', ['Buffer', 'TypedArray', 'DataView'], chunk);
        }
        let data = new Uint8Array(chunk.buffer, chunk.byteOffset, chunk.byteLength);
        const held = state[BUFFERED], encoding = state[ENCODING];
        if (held) {
            const joined = new Uint8Array(held + data.length);
            joined.set(state.subarray(0, held));
            joined.set(data, held);
            data = joined;
        }
        const [keep, missing] = remainder(data, encoding, held);
        state.set(data.subarray(data.length - keep), 0);
        state[BUFFERED] = keep;
        state[MISSING] = missing;
        return bytes.toString(data.subarray(0, data.length - keep), encoding);
    },
    flush(state) {
        let held = state[BUFFERED];
        const encoding = state[ENCODING];
        if (encoding === UCS2 && held % 2) held--;
        const text = held ? bytes.toString(state.slice(0, held), encoding) : '';
        state[BUFFERED] = state[MISSING] = 0;
        return text;
    },
});

bindings.encoding_binding = () => {
    const encodeIntoResults = new Uint32Array(2);
    const puny = () => shared.require('punycode');
    return {
        encodeIntoResults,
        setEncodeIntoResults() {},
        encodeInto(text, into) { encodeIntoResults.set(bytes.encodeSome(text, into)); },
        encodeUtf8String: text => new Uint8Array(bytes.fromString(text, UTF8)),
        decodeUTF8(data, ignoreMark, fatal) {
            const view = ArrayBuffer.isView(data) ? new Uint8Array(data.buffer, data.byteOffset, data.byteLength)
                : new Uint8Array(data);
            if (fatal && !bytes.isUtf8(view)) {
                const { codes } = shared.require('internal/errors');
                throw new codes.ERR_ENCODING_INVALID_ENCODED_DATA('utf-8', undefined);
            }
            const text = bytes.toString(view, UTF8);
            return !ignoreMark && text.charCodeAt(0) === 0xfeff ? text.slice(1) : text;
        },
        toASCII: text => puny().toASCII(text),
        toUnicode: text => puny().toUnicode(text),
        decodeLatin1: data => bytes.toString(data, 4),
    };
};
